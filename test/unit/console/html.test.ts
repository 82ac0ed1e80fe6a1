/** The HTML of the console, and times on its pages. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { formatStatus } from "../../../src/cli/status.ts";
import { html, renderClock, renderDue, renderTime } from "../../../src/console/html.ts";
import { renderMailboxes } from "../../../src/console/overview.ts";
import { openTestConsole } from "../../support/console.ts";

test("the HTML of the console escapes senders' text in elements and in attributes", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...`<>"'&;a\u2028`) }), (text) => {
      const made = String(html`<p title="${text}">${text}</p>`);
      expect(made.slice("<p title=".length, -"</p>".length)).not.toMatch(/<|'|"[^>]*"[^>]*"/);
      expect(made).toMatch(/^<p title="[^"<]*">[^<]*<\/p>$/);
    }),
  );
});

test("the HTML of the console shows line breaks and direction marks as escapes", () => {
  expect(String(html`${"exe.\u202Efdp\n"}`)).toBe("exe.\\u202efdp\\u000a");
});

test("the HTML of the console joins lists, skips missing values, and does not escape twice", () => {
  expect(String(html`<ul>${["a<b", "c"].map((it) => html`<li>${it}</li>`)}</ul>${undefined}${0}`)).toBe(
    "<ul><li>a&lt;b</li><li>c</li></ul>0",
  );
});

const ISO = "2026-07-01T20:00:00.000Z";
const TIME = { nowMs: Date.parse("2026-07-01T20:00:03Z"), zone: "Europe/Berlin" };
const MARKUP = `datetime="${ISO}" title="2026-07-01 22:00:00"`;

test.each([
  ["is relative", renderTime(ISO, TIME), "3 s ago"],
  ["may be exact", renderTime(ISO, { ...TIME, isExact: true }), "2026-07-01 22:00:00 (3 s ago)"],
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
