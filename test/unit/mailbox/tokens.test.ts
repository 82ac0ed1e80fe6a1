import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { Secret } from "../../../src/base/secret.ts";
import { loadTokenStores } from "../../../src/host/memory.ts";
import { Tokens } from "../../../src/mailbox/tokens.ts";
import { makeFolder } from "../../support/program.ts";
import { openTestService, openTestSimulator, SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings } from "../../support/settings.ts";

const STRANGER = new Secret("S".repeat(64));
const DAY_MS = 86_400_000;

test("a newer token is used when the one in use is about to end, and the kept one is its owner's alone", async () => {
  const { simulator, daemon, person, move, folder } = await setUp();
  await person.redeem(await mailedCode(simulator), SIGNAL);
  const [name = ""] = await readdir(folder);
  expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  await poll(daemon);
  move(DAY_MS);
  const before = simulator.totals()["verification-token"];
  await expect(poll(daemon)).rejects.toMatchObject({ code: "TOKEN_REFUSED" });
  // A service limits such requests.
  expect(simulator.totals()["verification-token"] - before).toBe(1);
  await person.redeem(await mailedCode(simulator), SIGNAL);
  await poll(daemon);
});

test("a token is known to need a person only if it comes from a mailed code; a renewed one is used at the next poll", async () => {
  const { simulator, daemon, person, move } = await setUp();
  await person.redeem(await mailedCode(simulator), SIGNAL);
  await poll(daemon);
  const first = daemon.tokens.facts;
  expect(first).toMatchObject({ isByCode: true });
  move(DAY_MS / 2);
  await person.redeem(await mailedCode(simulator), SIGNAL);
  await poll(daemon);
  expect((daemon.tokens.facts?.validUntilMs ?? 0) - (first?.validUntilMs ?? 0)).toBeGreaterThan(DAY_MS / 3);
  const registered = await setUp({});
  await poll(registered.daemon);
  expect(registered.daemon.tokens.facts).toMatchObject({ isByCode: false });
});

/** A mailbox, usually with an unregistered client id: a daemon that keeps its tokens, and a person beside it. */
async function setUp(client: { readonly clientId?: Secret } = { clientId: STRANGER }) {
  const simulator = await openTestSimulator();
  const folder = await makeFolder();
  const service = openTestService(simulator, client);
  let movedMs = 0;
  const clock = { now: () => Date.now() + movedMs };
  const openTokens = await loadTokenStores();
  const tools = { mailbox: mailboxSettings(simulator), service, configured: undefined, clock };
  const open = () => new Tokens({ ...tools, store: openTokens(folder) });
  const daemon = { tokens: open(), service };
  const move = (ms: number) => {
    movedMs += ms;
    simulator.advance(ms / 1000);
  };
  return { simulator, folder, daemon, person: open(), move };
}

async function poll({ tokens, service }: Awaited<ReturnType<typeof setUp>>["daemon"]): Promise<void> {
  await tokens.use((address) => service.pollReceived(address, {}, SIGNAL), SIGNAL);
}

async function mailedCode(simulator: Simulator): Promise<Secret> {
  await openTestService(simulator, { clientId: STRANGER }).mailVerificationCode(MAILBOX, SIGNAL);
  return new Secret(simulator.mails().at(-1)?.code ?? "");
}
