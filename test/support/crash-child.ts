/**
 * A daemon in a process of its own that polls once, and stops itself with SIGKILL at one of its durable steps.
 * Arguments: a JSON of { url, clientId, inbox, state, fetch, password, crashAt }. Prints how many steps it passed.
 */
import { subscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import { Secret } from "../../src/base/secret.ts";
import { runDaemon } from "../../src/daemon.ts";

const task = JSON.parse(process.argv[2] ?? "{}");
let steps = 0;
subscribe("inlet:durable-step", () => {
  steps++;
  if (steps === task.crashAt) process.kill(process.pid, "SIGKILL");
});

const secret = (text: string) => ({ described: "plain text", read: async () => new Secret(text) });
const nothing = () => {};
await runDaemon(
  {
    source: "the test",
    inbox: task.inbox,
    work: join(task.inbox, ".inlet"),
    state: task.state,
    queue: "embedded",
    mailboxes: [
      {
        name: "orders@example.com",
        email: "orders@example.com",
        pollMs: 60_000,
        fetch: task.fetch,
        verify: "require",
        layout: "{mailbox}/{trackingId}",
        passwords: [{ sender: "*", trackingId: undefined, password: secret(task.password) }],
        passwordAttempts: 2,
        paused: false,
        service: {
          baseUrl: new URL(task.url),
          clientId: secret(task.clientId),
          token: undefined,
          acceptLanguage: "en",
          ca: undefined,
          cert: undefined,
          key: undefined,
          proxy: { http: "", https: "", except: "" },
          timeoutMs: 10_000,
        },
      },
    ],
    limits: { transfers: 1, filesPerTransfer: 1, minFreeBytes: 0, maxTransferBytes: 2 ** 40, maxFiles: 100 },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: "READY" },
    warnings: [],
  },
  {
    mode: "once",
    stop: new AbortController().signal,
    graceMs: 1_000,
    watch: {
      stateChanged: nothing,
      discovered: nothing,
      progressed: nothing,
      polled: nothing,
      pollFailed: nothing,
      recovered: nothing,
      rejected: nothing,
      expiresSoon: nothing,
      clientIdMade: nothing,
      receiptDamaged: nothing,
      ready: nothing,
    },
  },
);
process.stdout.write(`${steps}\n`);
