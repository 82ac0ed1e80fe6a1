/** `demo`: a simulated service, and what it holds for one mailbox: listed, downloaded and verified. */
import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { describeFault, Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { openService } from "../service/open.ts";
import type { ServicePort, TransferAccess } from "../service/port.ts";
import { openSimulator } from "../simulator/open.ts";
import { sampleScenario } from "../simulator/samples.ts";
import type { SimulatedTransfer } from "../simulator/simulator.ts";
import { openTransfer } from "./api/opening.ts";
import { ownName, saveDownload } from "./api/saving.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { printable } from "./printing.ts";
import { formatBytes } from "./sizes.ts";

const MAILBOX = "orders@example.com";

export function define(demo: Command, run: Run): void {
  demo.option("--exit", "end when all is settled").action(() => run(runDemo));
}

async function runDemo(context: Context): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-demo-"));
  const simulator = await openSimulator(sampleScenario);
  const service = openService({
    baseUrl: new URL(simulator.url),
    clientId: new Secret(simulator.clientId),
    acceptLanguage: "en",
    proxy: { http: "", https: "", except: "" },
    ca: undefined,
    cert: undefined,
    key: undefined,
    timeoutMs: 10_000,
    connections: 4,
    idListForm: "repeat",
  });
  try {
    print(context, `A simulated transfer service listens on ${simulator.url}.`);
    const { token } = await service.obtainToken(MAILBOX, undefined, context.stop);
    const address = { email: MAILBOX, token };
    const { entries } = await service.pollReceived(address, { active: true, pageSize: 100 }, context.stop);
    print(context, `${MAILBOX} has received ${entries.length} transfers that can be downloaded.\n`);
    for (const entry of entries) {
      const transfer = simulator.transfers().find(({ trackingId }) => trackingId === entry.trackingId);
      if (transfer !== undefined) await receive(context, service, transfer, join(folder, entry.trackingId));
    }
    print(context, `\nWhat was received and verified stands in ${folder}:`);
    await printTree(context, folder, "  ");
  } finally {
    await service.close();
    await simulator.close();
  }
  return "fine";
}

async function receive(
  context: Context,
  service: ServicePort,
  transfer: SimulatedTransfer,
  folder: string,
): Promise<void> {
  const own = transfer.recipients.find(({ mailbox }) => mailbox === MAILBOX);
  const access = { transferId: own?.transferId ?? "", password: new Secret(transfer.password) };
  print(context, `${transfer.trackingId} from ${transfer.sender}`);
  try {
    await receiveFiles(context, service, access, folder);
  } catch (error) {
    if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
    print(context, `  ${styleText("red", "✗", { stream: context.stdout })} ${describeFault(error)}`);
  }
}

async function receiveFiles(
  context: Context,
  service: ServicePort,
  access: TransferAccess,
  folder: string,
): Promise<void> {
  const { files, checksumsOf } = await openTransfer(context, service, access);
  const names = files.map((file) => ownName(file.name));
  await mkdir(folder);
  let bytes = 0;
  let unverified = 0;
  for (const [at, file] of files.entries()) {
    const download = await service.openFile(access, file, { maxBytes: file.bytes }, context.stop);
    const expected = { bytes: file.bytes, checksums: checksumsOf(file) };
    const saved = await saveDownload(context, download, join(folder, names[at] ?? file.id), expected);
    bytes += saved.bytes;
    unverified += saved.verifiedBy.length === 0 ? 1 : 0;
  }
  const mark = styleText("green", "✓", { stream: context.stdout });
  const proof = unverified === 0 ? "verified" : "NOT verified: the service has no checksums for it";
  print(
    context,
    `  ${mark} ${files.length} file${files.length === 1 ? "" : "s"}, ${formatBytes(bytes)}, ${proof}`,
  );
}

async function printTree(context: Context, folder: string, indent: string): Promise<void> {
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  const shown = entries.slice(0, 4);
  for (const entry of shown) {
    print(context, `${indent}${printable(entry.name)}${entry.isDirectory() ? "/" : ""}`);
    if (entry.isDirectory()) await printTree(context, join(folder, entry.name), `${indent}  `);
  }
  if (entries.length > shown.length) print(context, `${indent}… and ${entries.length - shown.length} more`);
}

function print({ stdout }: Context, line: string): void {
  stdout.write(`${line}\n`);
}
