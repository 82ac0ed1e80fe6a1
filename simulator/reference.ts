/** The reference of scenarios, for `simulate --help`, `GET /control` and the documentation. */

export const SCENARIO_REFERENCE = `A scenario is JSON. Every key is optional; defaults are in parentheses.
  seed            makes ids, passwords and generated content reproducible (1)
  apiVersion      the version of the interface ("1.15")
  clientId        the client id that is registered for every address
  tokenSeconds    how long a verification token is valid (86400)
  wrongPasswords  { limit, reaction: "delete" or "lock", lockSeconds }: the
                  reaction to wrong passwords (5 delete the transfer)
  retentionDays   how long expired transfers are listed (30)
  maxPageSize     the largest page of a list (100)
  csv             { delimiter: "," ";" or "\\t", quote: "all" "minimal" or "none",
                  byteOrderMark, charset: "utf-8" "utf-16le" "utf-16be" or
                  "windows-1252", announceCharset, lineEnd, subject: "shown"
                  "empty" or "missing" }: the format of checksums files
  passwordRules   { minimumLengthRequired: 8, digitsRequired: true, … }
  oldPaths        true: zip, eml and checksums are below files/
  showsMessage    false: lists do not show that there is a confidential message
  noPassword      for transfers with password mode NONE: "link" (it carries the
                  password), "open" (none is needed), "withheld" (the link lacks it)
  otherFields     "refuse": undocumented fields are an error
  languagePacks   [{ locale, displayName, version, lastChangeTimestamp, files }]
  transfers       [transfer, …]
  faults          [fault, …]

A transfer:
  from, fromName  the sender
  to, cc, bcc     lists of addresses
  subject         of the notification
  message         a confidential message; without it, there is no EML
  files           [{ name, and one of text, base64, generate: { bytes, seed } }],
                  each also with listChecksum and csvChecksum ("right", "wrong" or
                  "missing") and announcedBytes
  password        (derived from the seed), passwordMode: "GENERATED" "MANUAL" "NONE"
  trackingId      (derived from seed and time)
  processingSeconds, expiresInSeconds, revokedAfterSeconds   from now
  failed          true: it fails after processing
  algorithm       "SHA-256" "SHA-1" "MD5" "SHA-512" or "none"

A fault applies to the requests that match all of its first four keys:
  on              an operation: status, client-id, verification, verification-code,
                  verification-token, received, sent, sent-legacy, info, files, file,
                  zip, eml, checksums, password-generate, password-check,
                  password-rules, languages, language, language-file
  transfer        a tracking-id or transfer-id
  file            the name of a file
  fromPage        this page of a list, or a later one
  skip            how many matching requests pass before the fault applies (0)
  times           to how many requests it then applies (1), or "always"
  does            one of:
  { kind: "reset", afterBytes }            a TCP reset, at once or within the body
  { kind: "stall", afterBytes, seconds }   a pause, forever without seconds
  { kind: "drip", bytes, pauseMs }         some bytes at a time, with pauses
  { kind: "truncate", afterBytes, announce }   too few bytes; announce:
                                           Content-Length is that of all
  { kind: "lengthen", bytes }              too many bytes
  { kind: "corrupt", at }                  one wrong bit
  { kind: "error", status, errorCode, errorMessage, retryAfter }
  { kind: "html", status, late }           an HTML page; late: the request takes
                                           effect all the same
  { kind: "empty", status, late }          a status (204) without a body
  { kind: "body", text, contentType, status, repeat }   any other text, repeat
                                           times
  { kind: "alter", path, value }           changes or, without value, removes a value
                                           of the JSON ("data.0.trackingId")
  { kind: "redirect", to, status }
  { kind: "range", mode }                  "honour" "ignore" "refuse" "elsewhere" "lie"
  { kind: "omit", headers }                leaves out headers: ["etag"]
  { kind: "change-etag" }                  another entity tag each time
  { kind: "shift", by }                    entries move from page to page
  { kind: "repeat", entries }              pages repeat entries of the one before
  { kind: "endless" }                      the list never ends
  { kind: "encoding", encoding }           "gzip" without being asked, or a false "br"
`;
