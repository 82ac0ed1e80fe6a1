import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { blocksOf } from "../../support/pages.ts";
import { makeFolder, runCommand } from "../../support/program.ts";

test("the command for a vault prints a password, nothing if there is no entry, and fails if the vault fails", async () => {
  const folder = await makeFolder();
  const script = blocksOf("docs/configuring.md").find(({ text }) => text.includes("vault kv get"));
  await writeFile(join(folder, "ask-vault"), script?.text ?? "");
  const vault = `#!/bin/sh
case $4 in
  transfers/known@a.example) echo "WARNING! The token expires soon." >&2; echo secret ;;
  transfers/other@a.example) echo "No value found at transfers/data/other@a.example" >&2; exit 2 ;;
  transfers/deleted@a.example) echo "No data found at transfers/data/deleted@a.example" >&2; exit 2 ;;
  transfers/denied@a.example) printf 'Error making API request.\\n\\nCode: 403. Errors:\\n* permission denied\\n' >&2; exit 2 ;;
  transfers/fieldless@a.example) echo 'Field "password" not present in secret' >&2; exit 1 ;;
  *) echo 'Get "https://vault.example": dial tcp: connect: connection refused' >&2; exit 2 ;;
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
  for (const name of ["other", "deleted"]) expect(await ask(`${name}@a.example`)).toEqual([0, ""]);
  for (const name of ["denied", "fieldless", "unreachable"]) {
    expect(await ask(`${name}@a.example`)).toEqual([1, ""]);
  }
});
