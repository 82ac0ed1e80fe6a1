/** Commands without a daemon, commands with one, the daemon's API and its pages answer the same questions alike. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { ACT_TEXTS } from "../../src/model/actions.ts";
import type { TransferAct } from "../../src/model/order.ts";
import type { Status, TransferStatus } from "../../src/model/status.ts";
import type { Story, TransferList } from "../../src/model/views.ts";
import { DaemonClient } from "../../src/operate/client.ts";
import { Remote } from "../../src/operate/remote.ts";
import { peekStatus } from "../../src/operate/status.ts";
import { callCommand, listJson } from "../support/command.ts";
import { startDaemon } from "../support/daemon.ts";
import { install } from "../support/installation.ts";
import { makeFolder } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

const WRONG_SUM = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];

/** One transfer for each state in which operators ask. */
const TRANSFERS = [
  transferPlan({ trackingId: "delivered" }),
  transferPlan({ trackingId: "quarantined", files: WRONG_SUM }),
  transferPlan({ trackingId: "locked-up", password: "Another-1" }),
  transferPlan({ trackingId: "spent", password: "Another-2" }),
  transferPlan({ trackingId: "held", from: "bob@elsewhere.example" }),
  transferPlan({ trackingId: "left-out", from: "news@elsewhere.example" }),
  transferPlan({ trackingId: "discarded", files: WRONG_SUM }),
  transferPlan({ trackingId: "handed-badly", from: "carl@third.example" }),
];

const MAILBOXES = [
  {
    email: MAILBOX,
    poll: "1h",
    passwordAttempts: 2,
    passwords: [
      { trackingId: "spent", password: "Wrong-1" },
      { trackingId: "locked-up", password: "Wrong-1" },
      { sender: "*", password: PASSWORD },
    ],
    routes: [
      { name: "held", sender: "bob@*", action: "hold" },
      { name: "news", sender: "news@*", action: "ignore" },
      { name: "third", sender: "*@third.example", handoff: { command: ["false"] } },
    ],
  },
];

/** What is compared of each transfer: 8 transfers, and 5 questions about each. */
const QUESTIONS = {
  "in which state is it, since when, and why": ["state", "reason", "message", "at", "until"],
  "what can be done": ["actions"],
  "with which commands": ["commands"],
  "what was sent, by whom and to whom": ["mailbox", "sender", "subject", "files", "bytes", "transferId"],
  "where does it go, and how was that decided": [
    "route",
    "routedBecause",
    "folder",
    "inbox",
    "kept",
    "rounds",
  ],
} as const satisfies Readonly<Record<string, readonly (keyof Story)[]>>;

test("40 questions have the same answers without a daemon, with one, by the API, and on the pages", async () => {
  const socket = join(await makeFolder(), "console.sock");
  const keys = { mailboxes: MAILBOXES, http: { listen: `unix:${socket}`, actions: true } };
  const { config } = await install({ transfers: TRANSFERS }, keys);
  const settings = { ...(await loadSettings({ env: {}, path: config })), sockets: [] };
  // Nothing changes between two questions.
  const daemon = startDaemon(settings, { handoff: { retryMs: 3_600_000 } });
  const ids = TRANSFERS.map(({ trackingId = "" }) => trackingId);
  const call = async (...args: string[]) => callCommand([...args, "--config", config]);
  const client = new DaemonClient(socket, "anna", new AbortController().signal);
  const get = async (path: string) => (await client.ask("GET", path)).body;
  const isSettled = () =>
    ids.every((id) => ["delivered", "quarantined", "waiting", "gone"].includes(daemon.stateOf(id) ?? ""));
  await expect.poll(isSettled).toBe(true);
  await expect.poll(() => daemon.handoffs.some((line) => line.startsWith("handed-badly"))).toBe(true);
  await call("discard", "discarded", "--yes");
  const passwordFile = join(await makeFolder(), "password");
  await writeFile(passwordFile, "Wrong-2\n");
  await call("password", "spent", "--password-file", passwordFile);

  const show = async (id: string) => JSON.parse((await call("show", id, "--json")).stdout) as Story;
  const remote = new Remote(client, settings);
  const queryFor = (trackingId: string) => new URLSearchParams({ mailbox: MAILBOX, trackingId });

  const withDaemon = await Promise.all(ids.map(show));
  const byApi = await Promise.all(
    ids.map(async (id) => JSON.parse(await get(`/api/transfers/story?${queryFor(id)}`)) as Story),
  );
  const bySocket = await Promise.all(ids.map((trackingId) => remote.story({ mailbox: MAILBOX, trackingId })));
  const listed = {
    command: await listJson(config),
    api: JSON.parse(await get("/api/transfers")) as TransferList,
  };
  const pages = await Promise.all(ids.map((id) => get(`/transfer?${queryFor(id)}`)));
  const live = JSON.parse(await get("/api/status")) as Status;
  const openPage = await get("/transfers?group=open");
  await daemon.stop();
  const alone = await Promise.all(ids.map(show));
  const listedAlone = await listJson(config);
  const peeked = await peekStatus(settings);

  let asked = 0;
  for (const [at, id] of ids.entries()) {
    const right = alone[at] ?? expect.fail(id);
    for (const [question, keys] of Object.entries(QUESTIONS)) {
      asked++;
      const answerOf = (story: Story) => keys.map((key) => story[key]);
      for (const [who, story] of Object.entries({ withDaemon, byApi, bySocket })) {
        expect({ who, id, question, answer: answerOf(story[at] ?? expect.fail(id)) }).toEqual({
          who,
          id,
          question,
          answer: answerOf(right),
        });
      }
    }
    // The lists have what the story has.
    for (const transfers of [listed.command, listed.api.transfers, listedAlone]) {
      const view = transfers.find(({ trackingId }) => trackingId === id);
      expect(right).toMatchObject(view ?? expect.fail(`${id} is not listed`));
    }
    for (const status of [live, peeked]) compareStatus(status, right);
    comparePage(pages[at] ?? "", right);
  }
  expect(asked).toBe(40);
  // What needs a person is the same in the daemon's status, and in the one read from the folders.
  const inNeed = (status: Status) => status.attention.map(({ trackingId }) => trackingId).toSorted();
  expect(inNeed(live)).toEqual(["handed-badly", "held", "locked-up", "quarantined", "spent"]);
  expect(inNeed(peeked)).toEqual(inNeed(live));
  for (const id of inNeed(live)) expect(openPage).toContain(id);
});

/** The status has what the story has, for each transfer that needs a person. */
function compareStatus({ attention }: Status, right: Story): void {
  const open = attention.find(({ trackingId }) => trackingId === right.trackingId);
  if (open !== undefined) expect(answersOf(open)).toEqual(answersOf(right));
}

/** The page says it in words, and has a form for each act. */
function comparePage(page: string, right: Story): void {
  expect(page).toContain(right.state);
  for (const command of right.commands) expect(page).toContain(escapeHtml(command));
  for (const act of right.actions) expect(page).toContain(labelOf(act, right));
  const others = (Object.keys(ACT_TEXTS) as TransferAct[]).filter((act) => !right.actions.includes(act));
  for (const act of others) expect(page).not.toContain(`name="action" value="${act}"`);
}

function answersOf({ state, actions, commands, subject, files, bytes }: TransferStatus | Story) {
  return { state, actions, commands, subject: subject ?? null, files: files ?? null, bytes: bytes ?? null };
}

function labelOf(act: TransferAct, { state }: Story): string {
  return act === "discard" && state === "gone" ? "Acknowledge" : ACT_TEXTS[act].label;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("'", "&#39;").replaceAll('"', "&quot;");
}
