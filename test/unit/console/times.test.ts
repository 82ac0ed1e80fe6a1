/** Times on the pages of the console. */
import { expect, test } from "vitest";
import { formatStatus } from "../../../src/cli/status.ts";
import { renderClock, renderDue, renderTime } from "../../../src/console/html.ts";
import { renderMailboxes } from "../../../src/console/overview.ts";
import { openTestConsole } from "../../support/console.ts";

const ISO = "2026-07-01T20:00:00.000Z";
const TIME = { nowMs: Date.parse("2026-07-01T20:00:03Z"), zone: "Europe/Berlin" };
const MARKUP = `datetime="${ISO}" title="2026-07-01 22:00:00"`;

test.each([
  ["is relative", renderTime(ISO, TIME), "3 s ago"],
  [
    "is exact where that is wanted",
    renderTime(ISO, { ...TIME, isExact: true }),
    "2026-07-01 22:00:00 (3 s ago)",
  ],
  ["may be that of a clock", renderClock(ISO, TIME), "22:00:00"],
  ["that is due is now", renderDue(ISO, TIME), "now"],
])("a time %s, with the exact time in the zone for those who point at it", (_what, time, words) => {
  expect(String(time)).toBe(`<time ${MARKUP}>${words}</time>`);
});

test("a poll that is due is shown as now, on pages and by commands", async () => {
  const { board } = await openTestConsole(0);
  const status = board.read();
  const at = new Date(TIME.nowMs).toISOString();
  const mailboxes = status.mailboxes.map((mailbox) => ({ ...mailbox, lastSuccess: ISO, nextPoll: ISO }));
  const page = String(renderMailboxes({ ...status, mailboxes }, [], TIME));
  expect(page).toContain(`data-column="Next poll"><span class="cell"><time ${MARKUP}>now</time>`);
  expect(formatStatus({ ...status, at, mailboxes }, undefined, process.stdout)).toContain(
    "polled 3 s ago, next now,",
  );
});

test("every page names the zone once, and the heartbeat has the same clock", async () => {
  const { url, board } = await openTestConsole(6);
  const timezone = "Asia/Kolkata";
  board.listener({ type: "settings-reloaded", mailboxes: [], timezone, needsRestart: [] });
  for (const path of ["", "transfers", "mailboxes", "history"]) {
    const page = await (await fetch(`${url}${path}`)).text();
    expect(page.match(/Asia\/Kolkata/g)).toHaveLength(1);
    expect(page).not.toContain("UTC");
  }
  const response = await fetch(`${url}api/events?as=heartbeat`);
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("data: ")) break;
  }
  const { at, clock } = JSON.parse(/data: (.*)/.exec(text)?.[1] ?? "{}");
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, timeStyle: "medium" });
  expect(clock).toBe(format.format(Date.parse(at)));
});
