/** Settings and pauses that are in force. */

import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exists } from "../../../src/base/durable.ts";
import type { MailboxSettings } from "../../../src/config/settings.ts";
import { LiveSettings } from "../../../src/daemon/live-settings.ts";
import { followPauses, putRecordsInForce } from "../../../src/daemon/reload.ts";
import { createPause, type Pauses, removePause } from "../../../src/ledger/pauses.ts";
import { type ChannelSettings, NOTICE_KINDS } from "../../../src/model/notify.ts";
import { digestOfMailbox } from "../../../src/model/transfer.ts";
import { makeFolder } from "../../support/program.ts";
import {
  MAILBOX,
  namedToken,
  OPERATOR,
  pageSettings,
  plainSecret,
  settingsIn,
} from "../../support/settings.ts";

const fileSecret = (path: string) => ({ ...plainSecret("0123456789abcdef"), described: `file ${path}` });
const http = (path: string) => pageSettings({ actions: true, tokens: namedToken(fileSecret(path)) });

test("a reload names every changed group, also notifications and the source of a console token", () => {
  const before = settingsIn("/x", [], { http: http("/old") });
  const live = new LiveSettings(before);
  expect(live.replace({ ...before, http: http("/old") })).toEqual({ changed: [], needsRestart: [] });
  expect(live.replace({ ...before, http: http("/new") })).toEqual({ changed: ["http"], needsRestart: [] });
  const notification = { on: NOTICE_KINDS } as unknown as ChannelSettings;
  const next = { ...before, http: http("/new"), notify: [notification] };
  expect(live.replace(next)).toEqual({ changed: ["notify"], needsRestart: [] });
});

test("a changed role of a token applies without a restart, and a token for reading with one", () => {
  const before = settingsIn("/x", [], { http: http("/old") });
  const live = new LiveSettings(before);
  const tokens = namedToken(fileSecret("/old"), "anna", "read");
  const reader = { ...before, http: pageSettings({ actions: true, tokens }) };
  expect(live.replace(reader)).toEqual({ changed: ["http"], needsRestart: [] });
  expect(live.now.http?.tokens).toBe(tokens);
  const closed = { ...before, http: pageSettings({ actions: true, tokens, read: "token" }) };
  expect(live.replace(closed)).toEqual({ changed: ["http"], needsRestart: ["http"] });
  expect(live.now.http?.read).toBe("open");
});

test("operators' pauses stay over a reload, and are no change of the configuration", () => {
  const mailbox = {
    name: "m",
    email: "m",
    paused: false,
    service: { baseUrl: new URL("https://x.example") },
  };
  const before = settingsIn("/x", [mailbox as unknown as MailboxSettings]);
  const live = new LiveSettings(before);
  const pauses = new Map([[digestOfMailbox("M"), { ...OPERATOR, at: "2026-03-01T08:00:00.000Z" }]]);
  expect(live.replace(live.configured, pauses)).toEqual({ changed: [], needsRestart: [] });
  expect(live.replace({ ...before })).toEqual({ changed: [], needsRestart: [] });
  expect(live.now.mailboxes).toMatchObject([{ paused: true, pause: OPERATOR }]);
  expect([live.configured.mailboxes, live.services()]).toEqual([before.mailboxes, new Map()]);
  live.replace(live.configured, new Map());
  expect(live.now.mailboxes).toMatchObject(before.mailboxes);
});

test("a pause does not end while the disk of the work folder is gone", async () => {
  const work = join(await makeFolder(), "work");
  await createPause(work, MAILBOX, OPERATOR, "2026-03-01T08:00:00.000Z");
  const live = new LiveSettings(settingsIn(work, [], { work }));
  await putRecordsInForce(live, () => {});
  const applied: Pauses[] = [];
  await using scope = new AsyncDisposableStack();
  const look = await followPauses(
    live,
    async (pauses) => void applied.push(pauses),
    () => {},
    scope,
  );
  await rename(work, `${work}.gone`);
  await look();
  expect(applied).toEqual([]);
  await rename(`${work}.gone`, work);
  await removePause(work, MAILBOX);
  await look();
  expect(applied.at(-1)).toEqual(new Map());
});

test("a work folder that has vanished is not made again by those who watch for pauses", async () => {
  const work = join(await makeFolder(), "work");
  await createPause(work, MAILBOX, OPERATOR, "2026-03-01T08:00:00.000Z");
  const live = new LiveSettings(settingsIn(work, [], { work }));
  await putRecordsInForce(live, () => {});
  await rm(work, { recursive: true });
  await using scope = new AsyncDisposableStack();
  await followPauses(
    live,
    async () => {},
    () => {},
    scope,
  );
  expect(await exists(work)).toBe(false);
});
