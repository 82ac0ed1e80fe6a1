/** I2 once: the key of a mailbox, which names its records, never changes. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findMailbox } from "../../../src/config/mailboxes.ts";
import { withKeys } from "../../../src/ledger/keys.ts";
import { Labels } from "../../../src/model/mailbox.ts";
import { makeFilter } from "../../../src/model/queries.ts";
import { makeFolder } from "../../support/program.ts";

const [A, B] = ["a@example.com", "b@example.com"];

describe("the key of a mailbox", () => {
  test("is its first name, whatever it is called later, and however its address is spelled", async () => {
    const claim = await setUp();
    expect(await claim({ [A]: "sales", [B]: B })).toEqual({ [A]: "sales", [B]: B });
    expect(await claim({ "A@Example.com": "orders", [B]: "lab" })).toEqual({
      "A@Example.com": "sales",
      [B]: B,
    });
    expect(await claim({ [B]: "sales", [A]: B })).toEqual({ [B]: B, [A]: "sales" });
  });

  test("is never that of another address, not even of a removed one", async () => {
    const claim = await setUp();
    await claim({ [A]: "sales" });
    expect(await claim({ [B]: "Sales" })).toEqual({ [B]: B });
    expect(await claim({ "c@example.com": B })).toEqual({ "c@example.com": "c@example.com" });
    await claim({ "d@example.com": "e@example.com" });
    expect(await claim({ "e@example.com": "SALES" })).toEqual({ "e@example.com": "e@example.com-2" });
  });

  test("is the same for all processes, in whichever order they start", async () => {
    const claim = await setUp();
    const names = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? `name-${at}` : "sales"));
    const found = await Promise.all(
      names.map((name, at) => claim({ [A]: name, [`${at}@x.example`]: "sales" })),
    );
    expect(new Set(found.map((keys) => keys[A])).size).toBe(1);
    const keys = Object.assign({}, ...found);
    expect(new Set(Object.values(keys)).size).toBe(names.length + 1);
    expect(await claim(Object.fromEntries(Object.keys(keys).map((email) => [email, email])))).toEqual(keys);
  });

  test("is foreseen by commands, which write nothing", async () => {
    const { work, ...folders } = await makeWork();
    const [mailbox] = await withKeys(work, [{ name: "sales", email: A }], "foreseen");
    expect(mailbox).toEqual({ name: "sales", label: "sales", email: A });
    expect(await readdir(folders.mailboxes)).toEqual([]);
    expect(await withKeys(join(work, "missing"), [{ name: A, email: A }], "foreseen")).toHaveLength(1);
  });

  test("is not guessed if its file is damaged: everything would be delivered again", async () => {
    const { work, mailboxes } = await makeWork();
    await writeFile(join(mailboxes, "000001.json"), "{");
    const claimed = withKeys(work, [{ name: A, email: A }], "claimed");
    await expect(claimed).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
  });
});

describe("what people call a mailbox", () => {
  const swapped = [
    { name: "one", label: "two", email: A },
    { name: "two", label: "one", email: B },
  ];

  test("means what the configuration says now, then an address, then a key", () => {
    const labels = new Labels([...swapped, { name: "old", label: "new", email: "c@example.com" }]);
    expect(["one", "TWO", A, B, "new", "old"].map((word) => labels.keyOf(word))).toEqual([
      "two",
      "one",
      "one",
      "two",
      "old",
      "old",
    ]);
    expect(["one", "two", "old"].map((key) => labels.of(key))).toEqual(["two", "one", "new"]);
    expect(["one", "Two", A, "nobody"].map((word) => findMailbox(swapped, word))).toEqual([1, 0, 0, -1]);
  });

  test("is matched by a pattern too, as are addresses and keys", () => {
    const { filtered } = new Labels([
      { name: A, label: "Team North", email: A },
      { name: "south", label: "Team South", email: B },
    ]);
    const found = (mailbox: string | undefined) => {
      const matches = makeFilter(filtered({ mailbox }));
      return [A, "south", "old"].filter((key) => matches({ mailbox: key }, undefined));
    };
    expect(["team*", "team north", "*@example.com", B, "s*", "o?d", undefined].map(found)).toEqual([
      [A, "south"],
      [A],
      [A, "south"],
      ["south"],
      ["south"],
      ["old"],
      [A, "south", "old"],
    ]);
  });

  test("is clear also for the transfers of a removed mailbox whose name another one has now", () => {
    const labels = new Labels([{ name: B, label: "sales", email: B }]);
    expect([labels.of("sales"), labels.of(B), labels.of("other")]).toEqual([
      "sales (removed)",
      "sales",
      "other",
    ]);
    for (const key of ["sales", B, "other"]) expect(labels.keyOf(labels.of(key))).toBe(key);
  });
});

async function makeWork() {
  const work = await makeFolder();
  const [mailboxes, temporary] = [join(work, "mailboxes"), join(work, "new")];
  for (const folder of [mailboxes, temporary]) await mkdir(folder);
  return { work, mailboxes };
}

/** Returns a function that starts a process with these names, by address, and returns the keys. */
async function setUp() {
  const { work } = await makeWork();
  return async (names: Readonly<Record<string, string>>) => {
    const mailboxes = Object.entries(names).map(([email, name]) => ({ email, name }));
    const keyed = await withKeys(work, mailboxes, "claimed");
    return Object.fromEntries(keyed.map(({ email, name }) => [email, name]));
  };
}
