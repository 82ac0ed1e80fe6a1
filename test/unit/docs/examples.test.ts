/** Every command that the pages show is one that the program understands, and every configuration is valid. */
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { createProgram } from "../../../src/cli/program.ts";
import { loadSettings } from "../../../src/config/load.ts";
import { makeFolder } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const PAGES = ["README.md", ...readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"))].map(
  (name) => (name === "README.md" ? name : join("docs", name)),
);

interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

const blocks: Block[] = PAGES.flatMap((page) =>
  [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].map(
    ([, language = "", text = ""]) => ({ page, language, text }),
  ),
);

/** What is typed: whole blocks of a shell, and lines after a `$`. */
const commands = blocks.flatMap(({ page, language, text }) =>
  text
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => language === "sh" || line.startsWith("$ "))
    .map((line) =>
      line
        .replace(/^\$ /, "")
        .replace(/\s+#.*$/, "")
        .trim(),
    )
    .map((line) => /^(?:sudo -u \w+ )?(?:npx )?inlet (.*)$/.exec(line)?.[1])
    .filter((words) => words !== undefined)
    .map((words) => [page, words] as const),
);

test.each(commands)("%s: inlet %s", async (_page, words) => {
  let called = 0;
  const program = createProgram(async () => {
    called++;
  });
  const silent = { writeErr: () => {}, writeOut: () => {} };
  const hush = (command: Command) => {
    command.configureOutput(silent);
    for (const child of command.commands) hush(child);
  };
  hush(program);
  const [line = ""] = words.split(" > ");
  const argv = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  await program.parseAsync(argv, { from: "user" });
  expect(called).toBe(1);
});

test("every script that is shown is there", () => {
  const { scripts } = packageJson;
  const shown = blocks.flatMap(({ text }) =>
    [...text.matchAll(/\bnpm run ([\w:]+)/g)].map(([, name]) => name ?? ""),
  );
  expect(shown.length).toBeGreaterThan(4);
  expect(shown.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
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
    // Secrets that are files have to be there.
    const given = text.replaceAll(/file: [\w/-]+/g, `file: ${join(folder, "secret")}`);
    await writeFile(join(folder, "secret"), "c".repeat(60), { mode: 0o600 });
    for (const [, name = ""] of given.matchAll(/credential: ([\w-]+)/g)) {
      await writeFile(join(folder, name), "c".repeat(60), { mode: 0o600 });
    }
    const path = join(folder, "inlet.yaml");
    await writeFile(path, JSON.stringify({ ...smallest, ...parse(given) }), { mode: 0o600 });
    const env = { STATE_DIRECTORY: "/var/lib/inlet", CREDENTIALS_DIRECTORY: folder };
    expect((await loadSettings({ path, env })).warnings).toEqual([]);
  });

  test("are found", () => {
    expect(whole.length).toBeGreaterThan(4);
    expect(commands.length).toBeGreaterThan(10);
  });
});
