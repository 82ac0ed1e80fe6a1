/**
 * What the pages quote exists: links, commands and their options, scripts, files; and every configuration is valid. Blocks of a
 * shell are run by test/flows/pages.test.ts.
 */
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Command, CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { loadSettings } from "../../../src/config/load.ts";
import { defineAll } from "../../support/command-tables.ts";
import { generateDocs } from "../../support/generated-docs.ts";
import { blocksOf, inlineCodeOf, PAGES, readPage } from "../../support/pages.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";
import { CA } from "../../support/tls.ts";

/** Languages of blocks, and the pages in which they may stand; a test runs or checks each of them. */
const LANGUAGES: Readonly<Record<string, (page: string) => boolean>> = {
  "": () => true,
  sh: () => true,
  // Run below.
  bash: (page) => page === "docs/configuring.md",
  yaml: () => true,
  mermaid: () => true,
  // Used by samba.test.ts.
  ini: (page) => page === "docs/samba.md",
  // Checked by openapi.test.ts.
  json: (page) => page === "docs/operating.md",
  python: (page) => page === "docs/consuming.md",
};

const blocks = PAGES.flatMap(blocksOf);
const program = await defineAll();

describe.each(PAGES)("%s", (page) => {
  test("has blocks that are run or checked", () => {
    const unknown = blocksOf(page).filter(({ language }) => LANGUAGES[language]?.(page) !== true);
    expect(unknown).toEqual([]);
  });

  test("names commands and options that there are", async () => {
    const transcripts = blocksOf(page).flatMap(({ text }) => [...text.matchAll(/^\$ (.*)$/gm)]);
    const typed = [...inlineCodeOf(page), ...transcripts.map(([, line = ""]) => line)];
    const wrong: string[] = [];
    for (const line of typed) {
      const words = /^(?:sudo -u \w+ )?(?:npx )?inlet (.*)$/.exec(line)?.[1]?.split(" ");
      const objection = words === undefined ? undefined : await objectionTo(words);
      if (objection !== undefined) wrong.push(`${line}: ${objection}`);
    }
    expect(wrong).toEqual([]);
  });

  test("links to what there is", () => {
    const links = [...readPage(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(
      ([, target]) => target ?? "",
    );
    const local = links.filter((target) => !/^[a-z]+:/.test(target));
    expect(local.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([]);
  });

  test("links to headings that there are", () => {
    const links = [...readPage(page).matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)];
    const wrong = links.filter(([, target = "", anchor = ""]) => {
      const other = target === "" ? page : join(dirname(page), target);
      return !anchorsOf(other).includes(anchor);
    });
    expect(wrong.map(([link]) => link)).toEqual([]);
  });

  test("names scripts and files that there are", () => {
    const text = readPage(page);
    const scripts = [...text.matchAll(/\bnpm run ([\w:]+)/g)].map(([, name]) => name ?? "");
    expect(scripts.filter((name) => !Object.hasOwn(packageJson.scripts, name))).toEqual([]);
    const files =
      text.match(/(?<![\w/.-])(?:bench|config|examples|simulator|src|systemd|test)\/[\w/.-]*\.\w+/g) ?? [];
    const isThere = (file: string) => [ROOT, join(ROOT, "src")].some((root) => existsSync(join(root, file)));
    expect(files.filter((file) => !isThere(file))).toEqual([]);
  });
});

describe("configurations", () => {
  const whole = blocks.filter(({ language }) => language === "yaml");

  test.each(whole.map((block) => [block.page, block.text] as const))("%s: %s", async (_page, text) => {
    const folder = await makeFolder();
    const smallest = {
      service: { baseUrl: "https://transfer.example.com" },
      inbox: "/srv/inbox",
      mailboxes: [{ email: "orders@example.com" }],
    };
    const pem = join(folder, "pem");
    await writeFile(pem, CA);
    // Secrets that are files have to be there.
    const given = text
      .replaceAll(/file: [\w/-]+/g, `file: ${join(folder, "secret")}`)
      .replaceAll(/ca: [\w/.-]+/g, `ca: ${pem}`);
    await writeFile(join(folder, "secret"), "c".repeat(60), { mode: 0o600 });
    for (const [, name = ""] of given.matchAll(/credential: ([\w-]+)/g)) {
      await writeFile(join(folder, name), "c".repeat(60), { mode: 0o600 });
    }
    const path = join(folder, "inlet.yaml");
    await writeFile(path, JSON.stringify({ ...smallest, ...parse(given) }), { mode: 0o600 });
    const env = { STATE_DIRECTORY: "/var/lib/inlet", CREDENTIALS_DIRECTORY: folder };
    expect((await loadSettings({ path, env })).warnings).toEqual([]);
  });

  test("name only credentials that the units load", () => {
    const [, id = ""] =
      /^LoadCredential=(\w+):\/etc\/inlet\/secrets$/m.exec(readPage("systemd/inlet.service")) ?? [];
    const texts = [...whole.map(({ text }) => text), readPage("config/inlet.example.yaml")].join("\n");
    const names = [...texts.matchAll(/{ credential: ([\w-]+) }/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !name.startsWith(`${id}_`))).toEqual([]);
  });

  test("are found", () => {
    expect(whole.length).toBeGreaterThan(10);
  });
});

test("every invariant in docs/design.md is named by the tests that it names", () => {
  const page = readPage("docs/design.md");
  const rows = [...page.matchAll(/^\| (I\d [a-z ]+?) \|.*\| ([^|]+) \|$/gm)];
  expect(rows).toHaveLength(8);
  for (const [, name = "", shown = ""] of rows) {
    const files = [...shown.matchAll(/\(\.\.\/(test\/[^)]+)\)/g)].map(([, file]) => file ?? "");
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(readFileSync(join(ROOT, file), "utf8"), file).toContain(name);
  }
});

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
  await writeFile(join(folder, "vault"), vault, { mode: 0o700 });
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

/** A command or option without its arguments is only mentioned. */
const MENTIONED: ReadonlySet<string> = new Set([
  "commander.missingArgument",
  "commander.optionMissingArgument",
  "commander.help",
  "commander.helpDisplayed",
  "commander.version",
]);

/** Why the program would not understand these words. Nothing is run. */
async function objectionTo(words: readonly string[]): Promise<string | undefined> {
  forget(program);
  try {
    // A usage names its parts in brackets.
    await program.parseAsync(
      words.filter((word) => !/^(…|\[.*\]|<.*>)$/.test(word)),
      { from: "user" },
    );
    return undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return MENTIONED.has(error.code) ? undefined : error.message;
  }
}

/** The options of the call before do not count for the next one. */
function forget(command: Command): void {
  for (const option of command.options) command.setOptionValue(option.attributeName(), undefined);
  for (const child of command.commands) forget(child);
}

/** As GitHub makes them from headings. */
function anchorsOf(page: string): string[] {
  const headings = [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading ?? "");
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} -]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test.each(Object.entries(await generateDocs()))(
  "%s says what the code says (npm run docs writes it)",
  (path, content) => {
    expect(readFileSync(resolve(import.meta.dirname, "../../..", path), "utf8")).toBe(content);
  },
);
