# Takes finished transfers from an inbox on a share, one after the other, and runs a program for each.
#
#   take-transfers.ps1 -Inbox \\server\transfers\inbox -Taken \\server\transfers\taken -Program C:\import\import.exe
#
# Taken must be on the share of the inbox, so that the server moves a folder there by one rename. The program gets two
# arguments: the folder and the delivery id. After exit code 0 the folder moves from Taken\claimed\ID to Taken\done\ID.
# After any other exit code it stays, and the next run tries it again.
param(
  [Parameter(Mandatory)] [string] $Inbox,
  [Parameter(Mandatory)] [string] $Taken,
  [Parameter(Mandatory)] [string] $Program
)
$ErrorActionPreference = 'Stop'
$claimed = Join-Path $Taken 'claimed'
$done = Join-Path $Taken 'done'
$failures = 0

function Import-Claimed([string] $id) {
  $folder = Join-Path $claimed $id
  $transfer = Get-Content -LiteralPath (Join-Path $folder 'transfer.json') -Raw -Encoding UTF8 | ConvertFrom-Json
  foreach ($file in @($transfer.files) + @($transfer.messageFile) | Where-Object { $_ }) {
    $hash = (Get-FileHash -LiteralPath (Join-Path $folder $file.name) -Algorithm SHA256).Hash
    if ($hash -ne $file.sha256) { throw "$($file.name) was changed after its delivery" }
  }
  & $Program $folder $id | Out-Host
  if ($LASTEXITCODE -ne 0) { throw "$Program ended with $LASTEXITCODE" }
  [IO.Directory]::Move($folder, (Join-Path $done $id))
}

function Invoke-Import([string] $id) {
  try { Import-Claimed $id } catch {
    [Console]::Error.WriteLine("$id in ${claimed}: $_")
    $script:failures++
  }
}

New-Item -ItemType Directory -Force -Path $claimed, $done | Out-Null
# One run at a time: while this run has the file open, the server refuses to open it for any other.
try { $lock = [IO.File]::Open((Join-Path $Taken 'lock'), 'OpenOrCreate', 'ReadWrite', 'None') } catch [IO.IOException] {
  'Another run is at work.'
  exit 0
}
try {
  # Left over from a crash, or failed.
  foreach ($folder in @(Get-ChildItem -LiteralPath $claimed -Directory)) { Invoke-Import $folder.Name }

  # Names that begin with a dot are Inlet's own. A folder that another consumer takes meanwhile is skipped.
  $found = @(Get-ChildItem -LiteralPath $Inbox -Recurse -File -Filter transfer.json -ErrorAction SilentlyContinue |
    Where-Object { $_.FullName.Substring($Inbox.Length) -notmatch '[\\/]\.' })
  foreach ($manifest in $found) {
    try {
      $id = (Get-Content -LiteralPath $manifest.FullName -Raw -Encoding UTF8 | ConvertFrom-Json).deliveryId
      if ($id -notmatch '^[0-9a-f]{32}$') { throw 'there is no delivery id' }
      if (Test-Path -LiteralPath (Join-Path $done $id)) { throw 'it is a copy of a delivery that was already taken' }
      [IO.Directory]::Move($manifest.Directory.FullName, (Join-Path $claimed $id))
    } catch {
      if (Test-Path -LiteralPath $manifest.FullName) {
        [Console]::Error.WriteLine("$($manifest.FullName): $_")
        $failures++
      }
      continue
    }
    Invoke-Import $id
  }
} finally {
  $lock.Close()
}
exit [int]($failures -gt 0)
