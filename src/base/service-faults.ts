/** Faults of the service and of its transfers. */
import { faults } from "./fault-kinds.ts";

/** Failures between us and the service that concern no single transfer. */
export const SERVICE_FAULTS = {
  ...faults("service", "retry", "none", {
    SERVICE_UNREACHABLE: [
      "The service could not be reached",
      "Check the base URL, the network, name resolution and the proxy; the daemon retries by itself.",
    ],
    SERVICE_TIMEOUT: [
      "The service did not answer in time",
      "The daemon retries by itself; if it persists, check the network or raise service.timeout.",
    ],
    CONNECTION_LOST: [
      "The connection was lost before the answer was complete",
      "The daemon retries by itself; if it persists, look for a proxy or firewall that cuts long downloads.",
    ],
    SERVER_FAULT: [
      "The service failed",
      "The daemon retries by itself; if it persists, contact the service's administrator.",
    ],
    CONFLICT: [
      "The request conflicts with what the service is doing with the transfer or the address",
      "The daemon retries by itself; if it persists, contact the service's administrator.",
    ],
    BAD_ANSWER: [
      "The answer does not follow the interface",
      "A proxy or login page may have answered; check that service.baseUrl leads to the service itself.",
    ],
    POLL_TOO_LONG: [
      "The poll took too long",
      "Inlet downloads the transfers listed so far and polls again. Ask the service's administrator why its lists are slow.",
    ],
  }),
  ...faults("service", "wait", "none", {
    TLS_REFUSED: [
      "No trusted TLS connection to the service could be established",
      "Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
    ],
    PROXY_REFUSED: [
      "The proxy refused the connection",
      "Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's rules.",
    ],
    REDIRECT_REFUSED: [
      "The service redirected to another address, and Inlet sends secrets only to the configured one",
      "If the service has moved, set service.baseUrl to its new address; otherwise ask its administrator.",
    ],
    RATE_LIMITED: [
      "The service limits the rate of requests",
      "The daemon waits as long as the service asks; if it persists, poll less often.",
    ],
  }),
  ...faults("service", "fatal", "person", {
    NOT_SUPPORTED: [
      "The service does not support this operation",
      "Ask the service's administrator whether the operation is disabled, or the service is too old for it.",
    ],
    BAD_REQUEST: [
      "The service did not understand the request",
      "Check the ids and options; if they are right, please report this as a defect of Inlet.",
    ],
    NOT_ACCEPTABLE: [
      "The service cannot answer in a form that Inlet accepts",
      "Check service.acceptLanguage. If it names a usual language, a proxy may have changed the request: ask the service's administrator.",
    ],
    API_VERSION: [
      "The service does not offer the interface version that Inlet needs",
      "Inlet needs 1.12 or a newer 1.x: ask the service's administrator for an update.",
    ],
  }),
  ...faults("service", "retry", "person", {
    ANSWER_TOO_LARGE: [
      "The answer is implausibly large",
      "Check that service.baseUrl leads to the service itself, and contact the service's administrator.",
    ],
    LIST_ENDLESS: ["The list of transfers does not end", "Contact the service's administrator."],
    TOO_MANY_TRANSFERS: [
      "The service lists more new transfers than Inlet takes up at once",
      "If you expect that many, do nothing: later polls take up the rest. Otherwise contact the service's administrator.",
    ],
  }),
  ...faults("service", "wait", "person", {
    TOKEN_REFUSED: [
      "The service does not accept the verification of this address",
      "Ask the service's administrator to register the client id for this address, or verify the address with inlet verify-address.",
    ],
    NOT_LICENSED: [
      "The service's REST interface is not licensed",
      "Ask the service's administrator to enable the interface.",
    ],
    POLICY_REFUSED: [
      "The service's policy refuses the request",
      "Ask the service's administrator which rule applies to this address.",
    ],
    ACCESS_REFUSED: [
      "The service, or a proxy in front of it, refused access",
      "Check the base URL and the proxy, and ask the service's administrator.",
    ],
  }),
  ...faults("service", "fatal", "setup", {
    NO_SUCH_ENDPOINT: [
      "The service does not have this endpoint",
      "Check service.baseUrl, the part of the address before /api. An older service may lack this operation.",
    ],
  }),
};

/** Failures of one transfer: its password, its content, its size. */
export const TRANSFER_FAULTS = {
  ...faults("transfer", "fatal", "person", {
    NOT_FOUND: [
      "The service did not find the transfer or file",
      "Check the id. A transfer may have expired, or not be ready yet.",
    ],
    TRANSFER_DELETED: ["The service has deleted the transfer", "Ask the sender to send it again."],
  }),
  ...faults("transfer", "wait", "person", {
    PASSWORD_REFUSED: [
      "The service refused the transfer password",
      "Ask the sender for the right password. Do not guess: too many wrong passwords lock or destroy the transfer.",
    ],
    PASSWORD_UNUSABLE: [
      "The password is empty, or not one line of text",
      "Supply the password again, as one line of UTF-8 text.",
    ],
    SECURITY_MODE: [
      "Inlet sends no password by itself to a transfer with this security mode",
      "Ask the sender how to open it. If that takes a password, supply it; otherwise download it in a browser, then discard it here.",
    ],
    TRANSFER_LOCKED: [
      "The service has locked the transfer after too many wrong passwords",
      "Wait: the service unlocks the transfer after some time. Requests before that only prolong the lock.",
    ],
  }),
  ...faults("transfer", "retry", "none", {
    PASSWORDS_HELD: [
      "No password is sent now, because the verdict on the last one is unknown",
      "Inlet continues by itself when the service answers again. Each attempt with an unknown verdict counts as spent.",
    ],
    NOT_READY: [
      "The service is still preparing the transfer",
      "Inlet continues by itself when the service lists the transfer as active.",
    ],
    ONE_AT_A_TIME: [
      "Another transfer with thousands of files is being downloaded from this service",
      "Inlet continues by itself when that download is done.",
    ],
    GAVE_WAY: [
      "The download was slow, and gave its slot to waiting transfers",
      "Inlet resumes it by itself.",
    ],
    RANGE_REFUSED: [
      "The service did not resume the download at the requested position",
      "Inlet downloads the file from the start.",
    ],
  }),
  ...faults("transfer", "quarantine", "person", {
    MESSAGE_REFUSED: [
      "The service does not return the confidential message of this transfer",
      "Ask the sender for the message, then release the transfer to deliver its files without it.",
    ],
    CHECKSUMS_UNREADABLE: [
      "The checksums file cannot be parsed",
      "Look at it with inlet api checksums --raw, and report its format as a defect of Inlet.",
    ],
    CHECKSUM_MISMATCH: [
      "The bytes received do not match the sender's checksum",
      "The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
    ],
    SIZE_MISMATCH: [
      "The number of bytes differs from the announced size",
      "The content was not delivered. Retry once; if it happens again, ask the sender to send the transfer again.",
    ],
    ALGORITHM_UNKNOWN: [
      "The checksum's algorithm is not supported",
      "Verify the file by hand, and ask for support of the algorithm.",
    ],
    UNVERIFIABLE: [
      "The service gives no checksum for the content, and this mailbox delivers only verified transfers",
      "Check the content and release the transfer, or set verify: prefer for the mailbox.",
    ],
    CHECKSUMS_INCOMPLETE: [
      "The checksums file and the file list name different files",
      "Ask the sender which files belong to the transfer, then release or discard it.",
    ],
    LIMIT_EXCEEDED: [
      "The transfer exceeds the configured limits",
      "Raise limits.maxTransferSize or limits.maxFiles and retry it, or discard it.",
    ],
    ARCHIVE_WRONG: [
      "The ZIP does not match the file list",
      "Do not use the ZIP. Download it again, or download the files one by one.",
    ],
  }),
};
