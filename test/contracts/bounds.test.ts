/** I8 bounded: the client needs little memory for any answer of a service. */
import { once } from "node:events";
import { createServer } from "node:http";
import { Worker } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { BoundedAsk } from "../support/bounded-client.ts";
import { listen } from "../support/servers.ts";
import { openPair, SIGNAL } from "../support/service.ts";

/** Memory of the thread, including the program. */
const MAX_MEBIBYTES = 120;

describe("I8 bounded: a small compressed answer with millions of values is a fault, not a crash", () => {
  const entry = (recipients: string) =>
    `{"data":[{"trackingId":"t","status":{"recipients":[${recipients}]}}]}`;
  const answers: readonly (readonly [string, BoundedAsk, string])[] = [
    ["recipients that are none", "page", entry(many("1", 1_900_000))],
    ["recipients that say nothing", "page", entry(many("{}", 1_300_000))],
    ["entries that are none", "page", `{"data":[${many("1", 1_900_000)}]}`],
    ["files that are none", "files", `{"data":[${many("1", 8_000_000)}]}`],
    ["files that say nothing", "files", `{"data":[${many("{}", 8_000_000)}]}`],
    ["rules that are none", "rules", `{"data":[${many("1", 500_000)}]}`],
    [
      "methods that are none",
      "verification",
      `{"data":{"verified":true,"verificationMethods":[${many("1", 500_000)}]}}`,
    ],
    ["versions that are none", "status", `{"apiVersions":{"uiApiVersions":[${many("1", 500_000)}]}}`],
  ];
  test.each(answers)("%s", async (_case, ask, text) => {
    const code = ask === "files" ? "BAD_ANSWER" : "ANSWER_TOO_LARGE";
    expect(await answerOf(ask, text)).toBe(code);
  });

  test("reads as many files as a transfer may have by default", async () => {
    const files = Array.from({ length: 100_000 }, (_, at) => ({
      id: `file${at}`,
      fileName: `report of a branch ${at}, quarter 3.pdf`,
      size: at,
      checksum: "0123456789abcdef".repeat(4),
      href: `/api/transfers/abcdefghij/files/file${at}?${"x".repeat(180)}`,
    }));
    expect(await answerOf("files", JSON.stringify({ data: files }))).toBe(100_000);
  });
});

test("I8 bounded: reads no more of a checksums file than the file list justifies", async () => {
  let sentBytes = 0;
  const chunk = Buffer.from("a,b\n".repeat(16_384));
  const url = await listen(
    createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/csv" });
      const send = () => {
        sentBytes += chunk.length;
        if (sentBytes > 256 * 1024 * 1024) response.end();
        else if (response.write(chunk)) setImmediate(send);
        else response.once("drain", send);
      };
      send();
    }),
  );
  const { service, access } = await openPair({}, { baseUrl: new URL(url) });
  const files = Array.from({ length: 20_000 }, (_, at) => ({ id: `${at}`, name: `file ${at}`, bytes: 1 }));
  const report = service.checksums(
    access,
    files.map((file) => ({ ...file, checksum: undefined })),
    SIGNAL,
  );
  await expect(report).rejects.toMatchObject({ code: "CHECKSUMS_UNREADABLE", verdict: "quarantine" });
  expect(sentBytes).toBeLessThan(24 * 1024 * 1024);
});

function many(value: string, count: number): string {
  return `${`${value},`.repeat(count - 1)}${value}`;
}

/** The number of entries, or the fault's code. Fails if the thread runs out of memory. */
async function answerOf(ask: BoundedAsk, text: string): Promise<unknown> {
  const packed = gzipSync(text);
  const url = await listen(
    createServer((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(packed);
    }),
  );
  const worker = new Worker(new URL("../support/bounded-client.ts", import.meta.url), {
    workerData: { url, ask },
    resourceLimits: { maxOldGenerationSizeMb: MAX_MEBIBYTES },
  });
  const [answer] = await once(worker, "message");
  await worker.terminate();
  return answer;
}
