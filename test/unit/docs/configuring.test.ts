import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { blocksOf } from "../../support/pages.ts";
import { makeFolder, runCommand } from "../../support/program.ts";

test("the command for a vault prints a password, nothing for none, and fails with the vault", async () => {
  const folder = await makeFolder();
  const script = blocksOf("docs/configuring.md").find(({ text }) => text.includes("vault kv get"));
  await writeFile(join(folder, "ask-vault"), script?.text ?? "");
  const vault = `#!/bin/sh
case $4 in
  transfers/known@a.example) echo secret ;;
  transfers/other@a.example) echo "No value found" >&2; exit 2 ;;
  *) echo "connection refused" >&2; exit 1 ;;
esac
`;
  await writeFile(join(folder, "vault"), vault);
  await chmod(join(folder, "vault"), 0o700);
  const ask = async (sender: string) => {
    const env = { PATH: `${folder}:${process.env["PATH"]}`, INLET_SENDER: sender };
    const { exitCode, stdout } = await runCommand("sh", [join(folder, "ask-vault")], { env });
    return [exitCode, stdout];
  };
  expect(await ask("known@a.example")).toEqual([0, "secret\n"]);
  expect(await ask("other@a.example")).toEqual([0, ""]);
  expect(await ask("broken@a.example")).toEqual([1, ""]);
});
