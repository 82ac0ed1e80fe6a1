/** An installed Inlet on a machine, and its simulated service. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { ROOT } from "../support/root.ts";
import { MAILBOX } from "../support/settings.ts";
import type { Machine } from "./machine.ts";

export const CLIENT_ID = "c".repeat(60);
export const PASSWORD = "Sunny+Harbour%42";
const SENDER = "anna@supplier.example";
export const INBOX = `/srv/inbox/${MAILBOX}/${SENDER}`;
export const SERVICE = "http://127.0.0.1:8470";

/** The Node of the installation, wherever that is. */
const NODE = ["env", "PATH=/usr/local/bin:/usr/lib/inlet/bin", "node", "-e"];

/** A simulated service with one transfer, `t1`. */
export async function startService(machine: Machine, program: string): Promise<void> {
  await machine.write("/srv/scenario.json", JSON.stringify({ clientId: CLIENT_ID, transfers: [plan("t1")] }));
  const simulate = `exec ${program} simulate --port 8470 --quiet --scenario /srv/scenario.json`;
  await machine.run("systemd-run", "--unit=simulator", "bash", "-c", simulate);
  await expect
    .poll(() => machine.attempt(...NODE, `await fetch("${SERVICE}/control")`).then((it) => it.exitCode))
    .toBe(0);
}

function plan(trackingId: string, files: readonly object[] = [{ name: "a.txt", text: "Hello" }]) {
  return { trackingId, from: SENDER, to: [MAILBOX], password: PASSWORD, files };
}

export async function control(machine: Machine, path: string, body?: object): Promise<unknown> {
  const post =
    body === undefined ? "" : `, { method: "POST", body: ${JSON.stringify(JSON.stringify(body))} }`;
  const script = `const it = await fetch("${SERVICE}/control/${path}"${post}); if (!it.ok) throw new Error(await it.text()); console.log(await it.text());`;
  return JSON.parse(await machine.run(...NODE, script));
}

export const addTransfer = (machine: Machine, trackingId: string, files?: readonly object[]) =>
  control(machine, "transfers", plan(trackingId, files));
export const addFault = (machine: Machine, fault: object) => control(machine, "faults", fault);

/** The number of requests for this operation. */
export async function asked(machine: Machine, operation: string): Promise<number> {
  const { totals } = (await control(machine, "requests")) as { totals: Record<string, number> };
  return totals[operation] ?? 0;
}

export async function property(machine: Machine, name: string, unit = "inlet"): Promise<string> {
  return (await machine.run("systemctl", "show", "--value", "-p", name, unit)).trim();
}

export function logOf(machine: Machine): Promise<string> {
  return machine.run("journalctl", "-u", "inlet", "-o", "cat");
}

export async function deliveries(machine: Machine): Promise<string[]> {
  const lines = (await machine.sh("cat /srv/inbox/.inlet/journal/*")).trim().split("\n");
  const all = lines.map((line) => JSON.parse(line) as { trackingId: string; state: string });
  return all.filter(({ state }) => state === "delivered").map(({ trackingId }) => trackingId);
}

export async function waitFor(machine: Machine, trackingId: string): Promise<void> {
  await expect
    .poll(() => machine.attempt("test", "-d", `${INBOX}/${trackingId}`).then(({ exitCode }) => exitCode))
    .toBe(0);
}

/** Commands of docs/installing.md and docs/recipes.md. */
export function blocksOf(name: string): string[] {
  const pages = ["installing", "recipes"].map((it) => readFileSync(join(ROOT, `docs/${it}.md`), "utf8"));
  const marked = new RegExp(`<!-- run: ${name} -->\\n\`\`\`sh\\n([\\s\\S]*?)\`\`\``, "g");
  return [...pages.join("\n").matchAll(marked)].map(([, script]) => script ?? "");
}

export function blockOf(name: string): string {
  const [block = ""] = blocksOf(name);
  return block;
}
