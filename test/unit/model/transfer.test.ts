/** Links of transfers, and security modes. */
import { expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { passwordOfLink, takesAnyPassword } from "../../../src/model/transfer.ts";

test.each([
  ["https://s.example/download?id=x&password=a%20b%3Bc", "a b;c"],
  ["https://s.example/download;jsessionid=1F.n1?id=x&password=a%20b%3Bc", "a b;c"],
  ["https://s.example/download?id=x&password=a%20b%3Bc;jsessionid=1F.n1", "a b;c"],
  ["/download?password=a%20b%3Bc;JSESSIONID=1F&id=x", "a b;c"],
  ["/download;jsessionid=password=1?id=x", undefined],
])("the password of the link %s is %s", (link, password) => {
  expect(passwordOfLink(new Secret(link))?.reveal()).toBe(password);
});

test.each([
  [undefined, true],
  ["ONE_TIME_PASSWORD", true],
  ["oneTimePassword", true],
  ["one-time password", true],
  ["QUICK", false],
  ["ONE_TIME_PASSWORD_AND_EID", false],
  ["unknown", false],
])("the security mode %s takes a password of a rule: %s", (mode, isTaken) => {
  expect(takesAnyPassword(mode)).toBe(isTaken);
});
