// @module-tag system
/** Keys that can be set for all mailboxes, for a mailbox and for a route: `inlet config show` says what deliveries look like. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { writeZip } from "../support/zip-writer.ts";

type Keys = Readonly<Record<string, unknown>>;

const LAB = "lab@example.com";
/** Each transfer, and the keys that apply to it. */
const TRANSFERS = [
  { trackingId: "t1", to: [LAB], from: "anna@a.example", prefix: "mailboxes[1]" },
  { trackingId: "t2", to: [MAILBOX], from: "anna@a.example", prefix: "mailboxes[0]" },
  { trackingId: "t3", to: [MAILBOX], from: "bert@b.example", prefix: "mailboxes[0].routes[0]" },
  { trackingId: "t4", to: [MAILBOX], from: "carl@c.example", prefix: "mailboxes[0].routes[1]" },
];
/** Values that differ from the defaults; `inbox` and `layout` are no keys of the hand-off. */
const FOLDERS: Keys = {
  fileMode: "0664",
  folderMode: "0755",
  group: 17_001,
  marker: "READY",
  manifest: "beside",
  done: ".ok",
  unpack: "instead",
  inbox: "other",
  layout: "flat/{trackingId}",
};
const FILES: Keys = {
  deliver: "files",
  names: "{trackingId}-{name}",
  unpack: "beside",
  done: true,
  fileMode: "0600",
  group: 17_002,
  inbox: "other",
  layout: "{trackingId}",
};
const CASES = [0, 1, 2].flatMap((turn) => [
  { kind: "folders", keys: FOLDERS, turn },
  { kind: "single files", keys: FILES, turn },
]);

test.each(CASES)("are shown as $kind are delivered, turn $turn", async ({ keys, turn }) => {
  const [common, mailbox, route] = [0, 1, 2].map((level) =>
    splitKeys(Object.entries(keys).filter((_, at) => (at + turn) % 3 === level)),
  );
  const zip = { name: "data.zip", base64: writeZip([{ name: "in.txt", content: "in" }]).toString("base64") };
  const files = [{ name: "a.txt", text: "Hello" }, zip];
  const transfers = TRANSFERS.map(({ prefix: _, ...plan }) => transferPlan({ ...plan, files }));
  const { config } = await install(
    { transfers },
    {
      handoff: common?.handoff,
      defaults: common?.layout,
      mailboxes: [
        {
          ...mailboxKeys(MAILBOX),
          ...mailbox?.layout,
          ...mailbox?.inbox,
          handoff: mailbox?.handoff,
          routes: [
            { name: "b", sender: "*@b.example", ...route?.layout, ...route?.inbox, handoff: route?.handoff },
            { name: "c", sender: "*@c.example" },
          ],
        },
        mailboxKeys(LAB),
      ],
    },
  );
  const once = await callCommand(["once", "--config", config]);
  expect(once.stderr).toContain("4 delivered, 0 waiting");
  const { stdout } = await callCommand(["config", "show", "--config", config, "--json"]);
  const values = JSON.parse(stdout) as { key: string; value: unknown }[];
  for (const { trackingId, to, from, prefix } of TRANSFERS) {
    const shown = (key: string) => values.find((it) => it.key === `${prefix}.${key}`)?.value;
    const handoff = (key: string) => String(shown(`handoff.${key}`));
    const layout = String(shown("layout")).replace("{mailbox}", String(to)).replace("{sender}", from);
    const folder = join(String(shown("inbox")), layout.replace("{trackingId}", trackingId));
    const found = entriesOf(folder, trackingId);
    expect([trackingId, ...found.map(({ path }) => path)]).toEqual([
      trackingId,
      ...expectedPaths(handoff, trackingId),
    ]);
    const gid = handoff("group") === "none" ? process.getgid?.() : Number(handoff("group"));
    for (const { path, isFolder, mode, ...entry } of found) {
      const wanted = handoff(isFolder ? "folderMode" : "fileMode");
      expect([path, mode.toString(8).padStart(4, "0"), entry.gid]).toEqual([path, wanted, gid]);
    }
  }
});

interface LevelKeys {
  readonly handoff: Keys;
  readonly inbox: Keys;
  readonly layout: Keys;
}

function splitKeys(entries: readonly [string, unknown][]): LevelKeys {
  const only = (test: (key: string) => boolean) => Object.fromEntries(entries.filter(([key]) => test(key)));
  return {
    inbox: only((key) => key === "inbox"),
    layout: only((key) => key === "layout"),
    handoff: only((key) => key !== "inbox" && key !== "layout"),
  };
}

/** The delivery, and the files beside it that belong to it, in order. */
function entriesOf(folder: string, trackingId: string) {
  const [parent, name] = [join(folder, ".."), folder.slice(folder.lastIndexOf("/") + 1)];
  const beside = readdirSync(parent).filter((it) => it.startsWith(name));
  const inside = readdirSync(folder).map((it) => join(name, it));
  return [...beside, ...inside].toSorted().map((path) => {
    const stats = statSync(join(parent, path));
    const { mode, gid } = stats;
    return { path: path.replace(name, trackingId), mode: mode & 0o777, gid, isFolder: stats.isDirectory() };
  });
}

function expectedPaths(handoff: (key: string) => string, id: string): string[] {
  const isFiles = handoff("deliver") === "files";
  const unpacked = { none: ["data.zip"], beside: ["data.zip", "data_in.txt"], instead: ["data_in.txt"] };
  const files = ["a.txt", ...(unpacked[handoff("unpack") as keyof typeof unpacked] ?? [])];
  const end = handoff("done") === "true" ? ".done" : handoff("done") === "false" ? "" : handoff("done");
  const manifest = ["transfer.json", "SHA256SUMS"];
  const nameOf = (name: string) =>
    isFiles ? handoff("names").replace("{trackingId}", id).replace("{name}", name) : name;
  const content = files.map(nameOf);
  return [
    id,
    ...content.map((name) => `${id}/${name}`),
    ...(isFiles && end !== "" ? content.map((name) => `${id}/${name}${end}`) : []),
    ...(!isFiles && end !== "" ? [`${id}${end}`] : []),
    ...(handoff("manifest") === "inside" ? manifest.map((name) => `${id}/${name}`) : []),
    ...(handoff("manifest") === "beside" ? manifest.map((name) => `${id}.${name}`) : []),
    ...(handoff("marker") === "none" ? [] : [`${id}/${handoff("marker")}`]),
  ].toSorted();
}
