// Selects the registration protocol version: the highest 1.x version that the plugin supports. Pure.

export type Version = readonly [major: number, minor: number, patch: number]

const SUPPORTED_MAJOR = 1

/** Returns the highest supported version, or an error message if none is supported or any version is invalid. */
export function bestVersion(supportedVersions: readonly string[]): Version | string {
  if (supportedVersions.length === 0) return 'the plugin reports no protocol version'
  const versions = supportedVersions.map(parseVersion)
  const invalidIndex = versions.indexOf(undefined)
  if (invalidIndex >= 0)
    return `the plugin reports an invalid version: ${JSON.stringify(supportedVersions[invalidIndex])}`
  const usableVersions = (versions as Version[]).filter(([major]) => major === SUPPORTED_MAJOR).sort(compareVersions)
  return (
    usableVersions.at(-1) ??
    `the plugin supports ${supportedVersions.join(', ')}, but this agent supports only ${SUPPORTED_MAJOR}.x`
  )
}

export function compareVersions(a: Version, b: Version): number {
  for (const position of [0, 1, 2] as const) if (a[position] !== b[position]) return a[position] - b[position]
  return 0
}

/** Parses versions such as `1.2.3`, `v1.2` and `1`. Suffixes after a hyphen or plus are ignored. */
export function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?$/.exec(text.trim())
  return match ? [Number(match[1]), Number(match[2] ?? 0), Number(match[3] ?? 0)] : undefined
}
