/** What docs/operating.md says of the log and of metrics is what the program does, and no error or metric is left out. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { STATES } from "../../../src/model/record.ts";
import { HELP } from "../../../src/observe/metrics.ts";
import { findProgram } from "../../support/debian.ts";
import { runCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const page = readFileSync(join(ROOT, "docs/operating.md"), "utf8");

test("docs/operating.md explains every error of the log, and only messages that there are", () => {
  const explained = new Set(rowsOf("The log").map(([message]) => message ?? ""));
  const logged = findLogged();
  const errors = logged.filter(({ levels }) => levels.some((level) => ["error", "fatal"].includes(level)));
  expect(errors.filter(({ message }) => !explained.has(message))).toEqual([]);
  expect([...explained.difference(new Set(logged.map(({ message }) => message)))]).toEqual([]);
});

test("docs/operating.md explains every metric", () => {
  const explained = rowsOf("Metrics").map(([name]) => name);
  expect(explained.toSorted()).toEqual(Object.keys(HELP).toSorted());
});

test("docs/operating.md explains every state of a transfer", () => {
  const states = new Set(rowsOf("States of a transfer").map(([state]) => state?.split("`")[0]));
  expect([...states].toSorted()).toEqual(STATES.toSorted());
});

describe("what ships for monitoring", () => {
  test("has alerts that Prometheus accepts", { tags: ["system"] }, async () => {
    const promtool = await findProgram("promtool", ["prometheus"]);
    const rules = join(ROOT, "config/prometheus-rules.yaml");
    const { exitCode, stdout, stderr } = await runCommand(promtool.path, ["check", "rules", rules]);
    expect([exitCode, stdout, stderr]).toEqual([0, expect.stringMatching(/SUCCESS: \d+ rules found/), ""]);
  });

  test.each(["config/prometheus-rules.yaml", "config/grafana-dashboard.json"])(
    "asks in %s only for metrics that there are",
    async (file) => {
      const asked = readFileSync(join(ROOT, file), "utf8").match(/\b(inlet|process)_[a-z_]+/g) ?? [];
      const unknown = asked.filter((name) => !Object.hasOwn(HELP, name.replace(/_(bucket|sum|count)$/, "")));
      expect(unknown).toEqual([]);
      expect(asked.length).toBeGreaterThan(5);
    },
  );
});

/** The cells of each row of the tables under a heading, without their backquotes. */
function rowsOf(heading: string): string[][] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim().replace(/^`|`$/g, "")),
    );
}

/** Calls of the log with a constant message, and the levels at which they may be told. */
function findLogged(): { levels: string[]; message: string }[] {
  const folder = join(ROOT, "src/cli");
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
  const texts = [...files, join(ROOT, "src/observe/log.ts")].map((file) =>
    readFileSync(file, "utf8").replace(/\s+/g, " "),
  );
  const call = /\blog(?:\.(\w+)|\[([^\]]+)\])\((?:[^"]*?, ?)?"([^"]+)",? ?\)/g;
  return texts.flatMap((text) =>
    [...text.matchAll(call)].map(([, level, chosen = "", message = ""]) => ({
      levels: level === undefined ? levelsIn(chosen) : [level],
      message,
    })),
  );
}

function levelsIn(chosen: string): string[] {
  const named = [...chosen.matchAll(/"(\w+)"/g)].map(([, level]) => level ?? "");
  return named.length > 0 ? named : ["debug", "info", "warn", "error"];
}
