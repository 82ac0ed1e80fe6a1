/**
 * The requests of transfers in the best possible order, and nothing else: no password is proven first, nothing is synced,
 * and all connections are always busy. Arguments: the base URL, the connections, the file of the certificate authority. The
 * list of transfers is in `transfers.json`, and the files are written below `out`, both in the current folder.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Pool } from "undici";
import { forEachLimit } from "../../src/base/concurrency.ts";
import type { RecordedService } from "./recording.ts";

const [url = "", connections = "", ca = ""] = process.argv.slice(2);
const pool = new Pool(url, { connections: Number(connections), connect: { ca: readFileSync(ca) } });
const transfers = JSON.parse(readFileSync("transfers.json", "utf8")) as RecordedService["transfers"];
mkdirSync("out");
await get("/api/users/orders@example.com/transfers/received-transfers?page=1");
await forEachLimit(transfers, 4 * Number(connections), async ({ transferId, files }) => {
  const base = `/api/transfers/${transferId}`;
  await get(base);
  await Promise.all([get(`${base}/files`), get(`${base}/checksums`)]);
  await Promise.all(
    files.map(async ({ id }) =>
      writeFile(join("out", `${transferId}-${id}`), await get(`${base}/files/${id}`)),
    ),
  );
});
await pool.close();

async function get(path: string): Promise<Buffer> {
  const { body, statusCode } = await pool.request({ path, method: "GET" });
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`);
  return Buffer.from(await body.arrayBuffer());
}
