/** Transfer passwords: the reaction to wrong ones, and the rules for new ones. */
import { describe, expect, test } from "vitest";
import { brokenRules, generatePassword } from "../../../simulator/password-rules.ts";
import type { PasswordRules } from "../../../simulator/scenario.ts";
import { ask, errorOf, jsonOf, simulate, simulateOne } from "./client.ts";

test("wrong passwords include those that differ in case, encoding or Unicode form", async () => {
  const { get } = await simulateOne({ password: "Pä+s" });
  for (const wrong of ["pä+s", "Pä s", "Pa\u0308+s"]) {
    expect(errorOf(await get("", { password: wrong }))).toBe("401/3003");
  }
  expect((await get("", { headers: { "X-CS-Password": "P%C3%A4+s" } })).status).toBe(200);
});

test("a generated password fulfils every rule at once, for any seed", () => {
  for (let seed = 0; seed < 50; seed += 1) {
    expect(brokenRules(generatePassword(everyRule, seed, "test"), everyRule)).toEqual([]);
  }
});

test("a generated password is impossible with contradictory rules, and the scenario is refused", async () => {
  const passwordRules = { minimumLengthRequired: 5, maximumLengthRequired: 4 };
  const transfers = [{ from: "a@example.com", to: ["b@example.com"], files: [] }];
  await expect(simulate({ passwordRules, transfers })).rejects.toThrow("passwordRules");
  expect(errorOf(await ask(await simulate({ passwordRules }), "/api/password"))).toBe("500/5000");
});

describe("the rules", () => {
  test("are listed by name, with their details", async () => {
    const passwordRules = {
      minimumLengthRequired: 8,
      blacklistedCharactersDeclined: "<>",
      lettersRequired: true,
    } as const;
    const simulator = await simulate({ passwordRules });
    const rules = [
      { name: "blacklistedCharactersDeclined", details: { characters: "<>" } },
      { name: "minimumLengthRequired", details: { length: 8 } },
      { name: "lettersRequired", details: {} },
    ];
    const listed = jsonOf(await ask(simulator, "/api/password/requirements"));
    expect(listed).toEqual({ data: rules, meta: {} });
    const judged = await ask(simulator, "/api/password", { body: { password: "<12>" } });
    expect(jsonOf(judged).data).toEqual({ valid: false, rulesNotFulfilled: rules });
  });

  test.each([
    ["whitespacesDeclined", "a\tb", "ab"],
    ["alphabeticalSequenceDeclined", "xAbCx", "abdxyba"],
    ["alphabeticalSequenceDeclined", "zyx", "zx"],
    ["numericSequenceDeclined", "x789", "x79"],
    ["numericSequenceDeclined", "210", "2011"],
    ["keyboardSequenceDeclined", "QWERtz", "qwe"],
    ["keyboardSequenceDeclined", "zuio", "yuoi"],
    ["keyboardSequenceDeclined", "lkjh", "lkj"],
    ["blacklistedCharactersDeclined", "a<b", "ab"],
    ["repeatedCharactersDeclined", "hello", "helo"],
    ["dictionaryWordsDeclined", "myPassWord1", "mypasword1"],
    ["minimumLengthRequired", "12345678901", "123456789012"],
    ["maximumLengthRequired", "x".repeat(21), "😀".repeat(20)],
    ["lettersRequired", "123!", "é"],
    ["digitsRequired", "abc!", "a1"],
    ["specialCharactersRequired", "abc 1", "a-c"],
    ["upperCaseRequired", "abc", "aBc"],
    ["lowerCaseRequired", "ABC", "AbC"],
  ] as const)("%s: %j breaks it, %j does not", (name, bad, good) => {
    const rules = { [name]: everyRule[name] };
    expect(brokenRules(bad, rules).map((rule) => rule.name)).toEqual([name]);
    expect(brokenRules(good, rules)).toEqual([]);
  });

  test.each([undefined, "[]", "{}", '{"password": 5}', "{"])(
    "judge nothing for the body %s",
    async (body) => {
      const answer = await ask(await simulate(), "/api/password", { method: "POST", body });
      expect(answer.status).toBe(400);
    },
  );
});

const everyRule: Required<PasswordRules> = {
  whitespacesDeclined: true,
  alphabeticalSequenceDeclined: true,
  numericSequenceDeclined: true,
  keyboardSequenceDeclined: true,
  blacklistedCharactersDeclined: true,
  repeatedCharactersDeclined: true,
  dictionaryWordsDeclined: true,
  minimumLengthRequired: 12,
  maximumLengthRequired: 20,
  lettersRequired: true,
  digitsRequired: true,
  specialCharactersRequired: true,
  upperCaseRequired: true,
  lowerCaseRequired: true,
};
