/** `inlet completion` in real shells. */
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { type DebianProgram, essentialProgram, findProgram } from "../support/debian.ts";
import { type Finished, LAUNCHER, makeFolder, runCommand, runProgram } from "../support/program.ts";

/** Typed words → some of the offered completions. */
const OFFERS: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [["ver"], ["verify", "verify-address", "version"]],
  [["api", "rec"], ["received"]],
  [
    ["api", "received", "--pa"],
    ["--page", "--page-size"],
  ],
  [["api", "--config", "x", "received", "--ac"], ["--active"]],
  [["api", "received", "--base"], ["--base-url"]],
  [
    ["run", "--log-level", ""],
    ["debug", "error", "info", "warn"],
  ],
  [["history", "--state", "quar"], ["quarantined"]],
  [
    ["completion", ""],
    ["bash", "fish", "zsh"],
  ],
  [["run", "--config", "/etc/hostn"], ["/etc/hostname"]],
];

test("bash offers commands, options of every level, choices, files and folders", async () => {
  const path = essentialProgram("bash");
  const { script, env } = await writeScript("bash");
  expect(await runCommand(path, ["-n", script])).toMatchObject({ exitCode: 0, stderr: "" });
  const offer = async (words: readonly string[]) => {
    const typed = ["inlet", ...words].map((word) => `'${word}'`).join(" ");
    const ask = `source ${script}; COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _inlet inlet; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return linesOf(await runCommand(path, ["--norc", "-c", ask], { env }));
  };
  for (const [typed, offered] of OFFERS) expect(await offer(typed)).toEqual(offered);
  // Bash passes --option=value as three words.
  expect(await offer(["run", "--log-level", "=", "de"])).toEqual(["debug"]);
  expect(await offer(["run", "--log-level", "="])).toEqual(["debug", "error", "info", "warn"]);
  expect(await offer(["verify", "/et"])).toEqual(["/etc"]);
  expect(await offer(["verify", "/etc/hostn"])).toEqual([""]);
  expect(await offer(["api", "received", "orders"])).toEqual([""]);
  const registered = await runCommand(path, ["--norc", "-c", `source ${script}; complete -p inlet`]);
  expect(registered.stdout).toBe("complete -F _inlet inlet\n");
});

test("fish offers the same, each with a description", { tags: ["system"] }, async () => {
  const fish = await findProgram("fish", ["fish", "fish-common", "libpcre2-32-0"]);
  const { script, env } = await writeScript("fish", fish);
  const run = (...args: string[]) => runCommand(fish.path, ["--no-config", ...args], { env });
  expect(await run("-n", script)).toMatchObject({ exitCode: 0, stderr: "" });
  const asked = [
    ...OFFERS.map(([typed]) => typed),
    ["run", "--log-level=de"],
    ["run", "--config=/etc/hostn"],
  ];
  const each = asked.map((words) => `complete -C '${["inlet", ...words].join(" ")}'; echo next`).join("; ");
  const { stdout, stderr } = await run("-c", `${functionsOf(fish)}source ${script}; ${each}`);
  expect(stderr).toBe("");
  const offered = stdout.split("next\n").map((part) => part.trim().split("\n"));
  expect(
    offered.slice(0, asked.length).map((lines) => lines.map((line) => line.split("\t")[0] ?? "").toSorted()),
  ).toEqual([...OFFERS.map(([, words]) => words), ["--log-level=debug"], ["--config=/etc/hostname"]]);
  expect(stdout).toContain("verify-address\tverify a mailbox's address with a mailed code");
});

test("zsh offers the same, with stand-ins for its own functions", { tags: ["system"] }, async () => {
  const zsh = await findProgram("zsh", ["zsh", "zsh-common"]);
  const { script, folder, env } = await writeScript("zsh", zsh);
  expect(await runCommand(zsh.path, ["-f", "-n", script], { env })).toMatchObject({
    exitCode: 0,
    stderr: "",
  });
  const asked = [...OFFERS, [["run", "--log-level=de"], ["debug"]], [["verify", "x"], ["files -/"]]] as const;
  const shell = join(folder, "try.zsh");
  const each = asked.map(([typed]) => askZsh(typed)).join("\n");
  await writeFile(shell, `${modulesOf(zsh)}\n${STAND_INS}\nsource ${script}\n${each}\n`);
  const { stdout, stderr } = await runCommand(zsh.path, ["-f", shell], { env });
  expect(stderr).toBe("");
  const parts = stdout.split("--\n").map((part) => part.trim().split("\n").toSorted());
  const expected = asked.map(([, words]) => (words[0]?.startsWith("/") ? ["files"] : words));
  expect(parts.slice(0, asked.length)).toEqual(expected);
});

test("other shells are refused, and the known ones named", async () => {
  const { exitCode, stderr } = await runProgram(["completion", "tcsh"]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining("Allowed choices are bash, zsh, fish")]);
});

/** Stand-ins that print the completions. */
const STAND_INS = `
compdef() { :; }
compset() { [[ $PREFIX == \${~2}* ]] && PREFIX=\${PREFIX#\${~2}}; }
_files() { print -- "files\${*:+ $*}"; }
_describe() { local list=\${@[-1]}; print -l -- \${(M)\${\${(P)list}%%:*}:#$PREFIX*}; }
`;

function askZsh(words: readonly string[]): string {
  const typed = ["inlet", ...words].map((word) => `'${word}'`).join(" ");
  return `words=(${typed}); CURRENT=$#words PREFIX=$words[-1]; _inlet; print -- --`;
}

/** An unpacked zsh or fish needs the paths of its own files. */
function functionsOf({ path, env }: DebianProgram): string {
  const root = dirname(dirname(path));
  return Object.keys(env).length === 0 ? "" : `set -p fish_function_path ${root}/share/fish/functions; `;
}

function modulesOf({ path, env }: DebianProgram): string {
  const root = dirname(dirname(path));
  return Object.keys(env).length === 0 ? "" : `module_path=(${root}/usr/lib/*/zsh/*(/))`;
}

/** The script, and an environment in which `inlet` is the built program. */
async function writeScript(shell: string, { env = {} }: Partial<DebianProgram> = {}) {
  const { exitCode, stdout, stderr } = await runProgram(["completion", shell]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  const folder = await makeFolder();
  const script = join(folder, `inlet.${shell}`);
  await writeFile(script, stdout);
  const start = `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`;
  await writeFile(join(folder, "inlet"), start, { mode: 0o755 });
  return { script, folder, env: { ...env, HOME: folder, PATH: `${folder}:${process.env["PATH"]}` } };
}

function linesOf({ stdout }: Finished): string[] {
  return stdout.replace(/\n$/, "").split("\n").toSorted();
}
