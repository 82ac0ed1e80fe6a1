/** Groups by name or number. */
import { readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findGroup, parseGroup } from "../../../src/host/groups.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

test("a group is found by its number, whether or not the system knows it, and by its name", async () => {
  expect(await findGroup("4294967294", SIGNAL)).toBe(4_294_967_294);
  const [name = "", , gid] = readFileSync("/etc/group", "utf8").split("\n")[1]?.split(":") ?? [];
  expect(await findGroup(name, SIGNAL)).toBe(Number(gid));
});

test("a group is read from /etc/group if getent is missing or cannot be executed", async () => {
  const [name = "", , gid] = readFileSync("/etc/group", "utf8").split("\n")[1]?.split(":") ?? [];
  const program = await lookUpBy("exit 2", 0o644);
  for (const lookUp of ["no-such-program", program]) {
    expect(await findGroup(name, SIGNAL, [lookUp, "group"])).toBe(Number(gid));
  }
});

test("a group that is unknown is a fault that names it", async () => {
  for (const lookUp of [["getent", "group"] as const, ["no-such-program", "group"] as const]) {
    await expect(findGroup("no-such-group", SIGNAL, lookUp)).rejects.toMatchObject({
      code: "GROUP_UNKNOWN",
      message: expect.stringContaining("no-such-group"),
    });
  }
});

test("a group of a directory service may come back in another case, and with many members", async () => {
  const program = await lookUpBy(`echo "sales team:*:70001:anna,${"b,".repeat(1_000)}"\necho second:x:1:`);
  expect(await findGroup("Sales Team", SIGNAL, [program, "group"])).toBe(70_001);
});

test("a group is not waited for when Inlet stops", async () => {
  const program = await lookUpBy("exec sleep 60");
  const stop = new AbortController();
  const finding = findGroup("sales", stop.signal, [program, "group"]);
  stop.abort();
  await expect(finding).rejects.toMatchObject({ code: "STOPPED" });
});

test.each([
  ["sales:x:70001:", 70_001],
  ["sales:x:0:", 0],
  ["sales:x::", undefined],
  ["sales:x:-1:", undefined],
  ["", undefined],
  [undefined, undefined],
])("a group is read from %j", (line, gid) => expect(parseGroup(line)).toBe(gid));

async function lookUpBy(script: string, mode = 0o755): Promise<string> {
  const program = join(await makeFolder(), "lookup");
  await writeFile(program, `#!/bin/sh\n${script}\n`);
  await chmod(program, mode);
  return program;
}
