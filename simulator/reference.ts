/** Every key of a scenario, explained: for `simulate --help`, `GET /control` and the documentation. */

export const SCENARIO_REFERENCE = `A scenario is JSON. Every key is optional; a wrong one is named.
  seed            makes ids, passwords and generated content reproducible (1)
  apiVersion      the version it speaks ("1.15")
  clientId        the client id that is registered for every address
  tokenSeconds    how long a verification token is good for (86400)
  wrongPasswords  { limit, reaction: "delete" or "lock", lockSeconds }: what too
                  many wrong passwords do (5 delete the transfer)
  retentionDays   after so many days expired transfers are not listed (30)
  maxPageSize     the largest page it gives (100)
  csv             { delimiter: "," ";" or "\\t", quote: "all" "minimal" or "none",
                  byteOrderMark, charset: "utf-8" "utf-16le" "utf-16be" or
                  "windows-1252", announceCharset, lineEnd, subject: "shown"
                  "empty" or "missing" }: how checksums files are written
  passwordRules   { minimumLengthRequired: 8, digitsRequired: true, … }
  oldPaths        true: zip, eml and checksums stand below files/
  showsMessage    false: lists do not say whether there is a confidential message
  noPassword      of transfers with password mode NONE: "link" (it carries one),
                  "open" (none is needed), "withheld" (the link lacks it)
  otherFields     "refuse": fields that the interface does not name are an error
  languagePacks   [{ locale, displayName, version, lastChangeTimestamp, files }]
  transfers       [transfer, …]
  faults          [fault, …]

A transfer:
  from, fromName  who sent it
  to, cc, bcc     lists of addresses
  subject         of the notification
  message         a confidential message; only with one there is an EML
  files           [{ name, and one of text, base64, generate: { bytes, seed } }],
                  each also with listChecksum and csvChecksum ("right", "wrong" or
                  "missing") and announcedBytes
  password        (made from the seed), passwordMode: "GENERATED" "MANUAL" "NONE"
  trackingId      (made from seed and time)
  processingSeconds, expiresInSeconds, revokedAfterSeconds   counted from now
  failed          true: it fails after processing
  algorithm       "SHA-256" "SHA-1" "MD5" "SHA-512" or "none"

A fault strikes requests that fit on (an operation), transfer (a tracking-id or
transfer-id), file (a name) and fromPage (this page of a list, or a later one),
after letting skip of them pass, times times (1; or "always"). The operations:
status, client-id, verification, verification-code, verification-token, received,
sent, sent-legacy, info, files, file, zip, eml, checksums, password-generate,
password-check, password-rules, languages, language, language-file. What it does:
  { kind: "reset", afterBytes }            a TCP reset, at once or inside the body
  { kind: "stall", afterBytes, seconds }   silence, for so long or for ever
  { kind: "drip", bytes, pauseMs }         so many bytes at a time
  { kind: "truncate", afterBytes, announce }   too few; announce: Content-Length
                                           still promises all
  { kind: "lengthen", bytes }              too many
  { kind: "corrupt", at }                  one wrong bit
  { kind: "error", status, errorCode, errorMessage, retryAfter }
  { kind: "html", status, late }           a page for people; late: the service has
                                           seen the request
  { kind: "empty", status, late }          a status (204), and nothing else
  { kind: "body", text, contentType, status, repeat }   any other text, repeat
                                           times; or none
  { kind: "alter", path, value }           one value of the JSON changed or, without
                                           value, taken away ("data.0.trackingId")
  { kind: "redirect", to, status }
  { kind: "range", mode }                  "honour" "ignore" "refuse" "elsewhere" "lie"
  { kind: "omit", headers }                headers left out: ["etag"]
  { kind: "change-etag" }                  another entity tag each time
  { kind: "shift", by }                    entries move from page to page
  { kind: "repeat", entries }              pages repeat entries of the one before
  { kind: "endless" }                      the list never ends
  { kind: "encoding", encoding }           "gzip" unasked, or "br" claimed
`;
