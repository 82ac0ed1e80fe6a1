/** Turns what was written for a secret into its source, and makes sure now that it can be read later. */
import { basename } from "node:path";
import { Fault } from "../base/faults.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { Draft } from "./draft.ts";
import { formatPath, type KeyPath } from "./problems.ts";
import type { RawSecret } from "./raw.ts";
import { describeReaders } from "./readers.ts";
import { describeSecret, openSecret, readSecret, type SecretForm } from "./secrets.ts";

/** Says what is wrong with a secret, without repeating it; `undefined` for nothing. */
export type SecretRule = (secret: Secret) => string | undefined;

/** Problems and warnings go to the draft. Commands are not run: they may ask a person, cost something, or be slow. */
export async function parseSecret(
  raw: RawSecret,
  path: KeyPath,
  draft: Draft,
  rule: SecretRule = () => undefined,
): Promise<SecretSource> {
  const form = parseForm(raw, path, draft);
  if (form.kind === "text" && draft.variableOf(path) === undefined) draft.plainSecrets.push(path);
  if (form.kind !== "command" && !draft.ignoreSecrets) await check(form, path, draft, rule);
  return withRule(openSecret(form, draft.env), rule);
}

function parseForm(raw: RawSecret, path: KeyPath, draft: Draft): SecretForm {
  if (typeof raw === "string") {
    const at = draft.variableOf(path) ?? `${formatPath(path)} in ${basename(draft.file ?? "")}`;
    return { kind: "text", text: new Secret(raw), at };
  }
  const { file, env, credential, command } = raw;
  if (file !== undefined) return { kind: "file", path: draft.resolvePath([...path, "file"], file) };
  if (env !== undefined) return { kind: "env", name: env };
  if (credential !== undefined) return { kind: "credential", name: credential };
  const [program = "", ...args] = command ?? [];
  // A bare name is looked up in PATH, as everywhere.
  const isPath = program.includes("/");
  const found = isPath ? draft.resolvePath([...path, "command"], program) : program;
  return { kind: "command", argv: [found, ...args] };
}

async function check(form: SecretForm, path: KeyPath, draft: Draft, rule: SecretRule): Promise<void> {
  const reading = await readSecret(form, draft.env, new AbortController().signal);
  const why = "why" in reading ? reading.why : rule(reading.secret);
  const key = form.kind === "text" ? path : [...path, form.kind];
  if (why !== undefined) draft.problems.add(key, `${describeSecret(form)} ${why}`);
  if (form.kind !== "file") return;
  const readers = await describeReaders(form.path);
  if (readers !== undefined) draft.warnings.push(`${formatPath(path)}: ${readers}`);
}

function withRule(source: SecretSource, rule: SecretRule): SecretSource {
  return {
    described: source.described,
    read: async (signal) => {
      const secret = await source.read(signal);
      const why = rule(secret);
      if (why !== undefined) throw new Fault("SECRET_UNREADABLE", { detail: `${source.described} ${why}` });
      return secret;
    },
  };
}
