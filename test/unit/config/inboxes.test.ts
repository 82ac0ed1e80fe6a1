/** The inboxes of mailboxes: which paths are accepted beside the common inbox, the work and the state folder. */
import { relative } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { inboxesOf } from "../../../src/config/settings.ts";
import { load, problemsOf } from "./stage.ts";

function config(inboxes: readonly (string | undefined)[], folders: Record<string, string> = {}): string {
  return JSON.stringify({
    service: { baseUrl: "https://transfer.example.com" },
    inbox: "/srv/inbox",
    state: "/var/lib/inlet",
    ...folders,
    mailboxes: inboxes.map((inbox, at) => ({ email: `m${at}@example.com`, ...(inbox && { inbox }) })),
  });
}

test("the inbox of a mailbox is an absolute path, and a relative one begins beside the file", async () => {
  const { mailboxes } = await load(config(["/srv/sales", undefined, "hr"]));
  const paths = ["/srv/sales", undefined, expect.stringMatching(/^\/.+\/hr$/)];
  expect(mailboxes.map(({ inbox }) => inbox)).toEqual(paths);
});

test("the inbox of a mailbox may be that of another mailbox, and gets the mode of its mailbox's folders if it has to be created", async () => {
  const inboxes = async (folderMode: string) => {
    const text = config(["/srv/sales", "/srv/sales", "/srv/inbox"]);
    const handoff = `"handoff":{"folderMode":"${folderMode}"}`;
    return inboxesOf(await load(text.replace(/"inbox":"\/srv\/sales"/, `$&,${handoff}`)));
  };
  for (const [written, mode] of [
    ["0750", 0o750],
    ["0770", 0o770],
  ] as const) {
    expect(await inboxes(written)).toEqual([
      { path: "/srv/inbox", mode: 0o750 },
      { path: "/srv/sales", mode },
    ]);
  }
});

test.each([
  ["/srv/inbox/sales", 'is inside the inbox "/srv/inbox", where a delivery could collide with it'],
  ["/srv", "contains the common inbox, with which a delivery could collide"],
  ["/srv/inbox/.inlet", "is inside the work folder, which only Inlet may use"],
  ["/srv/inbox/.inlet/x", "is inside the work folder, which only Inlet may use"],
  ["/var/lib/inlet/x", "is inside the state folder, which only Inlet may use"],
  ["/var/lib", "contains the state folder, with which a delivery could collide"],
  ["~/inbox", "~ is not expanded"],
])("the inbox of a mailbox must not be %s", async (inbox, why) => {
  const problems = await problemsOf(config([inbox]));
  expect(problems[0]).toContain("mailboxes[0].inbox: ");
  expect(problems.join()).toContain(why);
});

test("I5 no escape: the inbox of a mailbox whatever the paths, no accepted inbox can hold another one, work or state under a delivery's name", async () => {
  const segment = fc.constantFrom("a", "b", ".c", "..d");
  const path = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join("/")}`);
  let [accepted, refused] = [0, 0];
  const explore = fc.asyncProperty(path, path, path, path, path, async (inbox, work, state, one, two) => {
    const settings = await load(config([one, two], { inbox, work, state })).catch(() => undefined);
    if (settings === undefined) return void refused++;
    accepted++;
    const all = [inbox, one, two, work, state];
    const led = [inbox, one, two].flatMap((root) => all.filter((other) => couldDeliver(root, other)));
    const hidden = [one, two].filter((root) => isWithin(root, work) || isWithin(root, state));
    expect({ led, hidden }).toEqual({ led: [], hidden: [] });
  });
  await fc.assert(explore, { numRuns: 300 });
  expect(Math.min(accepted, refused)).toBeGreaterThan(10);
});

/** Whether a delivery to the inbox can have the path of another folder, or be above it. */
function couldDeliver(root: string, other: string): boolean {
  return root !== other && isWithin(other, root) && !relative(root, other).startsWith(".");
}

function isWithin(folder: string, above: string): boolean {
  return `${folder}/`.startsWith(`${above}/`);
}
