/** What flows know of the passwords of transfers. */
export type { Passwords } from "./passwords.ts";
export type { CoRecipients, Proof } from "./request.ts";
