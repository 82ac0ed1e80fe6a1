import { expect, test } from "vitest";
import { parseConfigDocument } from "../../../src/config/document.ts";

test("YAML becomes values with their positions", () => {
  const { values, errors, locate } = parseConfigDocument(
    "inbox: /srv\nmailboxes:\n  - email: a@b\n    passwords:\n      - {sender: x}\n",
  );
  expect([values, errors]).toEqual([
    { inbox: "/srv", mailboxes: [{ email: "a@b", passwords: [{ sender: "x" }] }] },
    [],
  ]);
  expect(locate(["inbox"])).toEqual({ line: 1, column: 1 });
  expect(locate(["mailboxes", 0])).toEqual({ line: 3, column: 5 });
  expect(locate(["mailboxes", 0, "passwords", 0, "sender"])).toEqual({ line: 5, column: 10 });
  expect(locate(["mailboxes", 1])).toBeUndefined();
  expect(locate(["inbox", "x"])).toBeUndefined();
});

test("YAML keeps numbers with a leading zero as text", () => {
  const { values } = parseConfigDocument("a: 0640\nb: 0o640\nc: 007\nd: 0\ne: 640\nf: 0.5\n");
  expect(values).toEqual({ a: "0640", b: "0o640", c: "007", d: 0, e: 640, f: 0.5 });
});

test.each(["", "# only a comment\n", "---\n"])("YAML may be empty: %j", (text) => {
  expect(parseConfigDocument(text)).toMatchObject({ values: {}, errors: [] });
});

test("YAML may use an alias, which has the position of its anchor", () => {
  const { values, locate } = parseConfigDocument("a: &x { b: 1 }\nc: *x\n");
  expect(values).toEqual({ a: { b: 1 }, c: { b: 1 } });
  expect(locate(["c", "b"])).toEqual({ line: 1, column: 9 });
});

test.each([
  ["inbox:\n\tx: 1\n", "2:1", "tabs cannot be used for indentation: use spaces"],
  ["inbox: a\nwork: b\ninbox: c\n", "3:1", "this key is already given above in the same group"],
  ["password: *hunter2\n", "1:11", "a value that begins with * must be in quotes"],
  ["password: !hunter2 x\n", "1:11", "a value that begins with ! must be in quotes"],
  ["password: @hunter2\n", "1:11", "a value that begins with this character must be in quotes"],
  ["password: hunter2: x\n", "1:11", "a value that contains ': ' must be in quotes"],
  ['password: "hunter2\n', "2:1", "something is missing here: a closing quote"],
  ['password: "\\hunter2"\n', "1:12", "unknown escape: double a backslash, or use single quotes"],
  ["password: 'hunter2' x\n", "1:21", "this is not valid YAML"],
  ["a: 1\n---\nb: hunter2\n", "2:1", "the file must have one document"],
  ["- hunter2\n", "1:1", "the file must have keys such as inbox: /srv/inbox"],
  ["hunter2", "1:1", "the file must have keys such as inbox: /srv/inbox"],
  ["? [hunter2]\n: x\n", "1:3", "a key must be a plain word"],
  ["a: &a\n  b: *a\n", "1:1", "this YAML is nested too deeply, or has too many aliases"],
  [`a: ${"[".repeat(9000)}${"]".repeat(9000)}`, "1:", "this YAML is nested too deeply"],
  [bomb(), "1:1", "this YAML is nested too deeply, or has too many aliases"],
])("YAML is refused with a helpful message that quotes nothing: %#", (text, at, message) => {
  const { values, errors } = parseConfigDocument(text);
  const [first] = errors;
  expect(values).toEqual({});
  expect(`${first?.line}:${first?.column}`).toContain(at);
  expect(first?.message).toContain(message);
  expect(errors.length).toBeLessThanOrEqual(3);
  expect(JSON.stringify(errors)).not.toContain("hunter2");
});

function bomb(): string {
  const levels = ["a", "b", "c", "d", "e"];
  return levels
    .map((name, at) => {
      const item = at === 0 ? "x" : `*${levels[at - 1]}`;
      return `${name}: &${name} [${Array.from({ length: 20 }, () => item).join(", ")}]`;
    })
    .join("\n");
}
