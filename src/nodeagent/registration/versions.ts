// Chooses the version of the registration protocol: the highest 1.x that the plugin supports. Pure.

export type Version = readonly [major: number, minor: number, patch: number]

const MAJOR = 1

/** The best supported version, or a message if none is supported. */
export function bestVersion(offered: readonly string[]): Version | string {
  if (offered.length === 0) return 'it reports no protocol version'
  const versions = offered.map(parseVersion)
  const bad = versions.indexOf(undefined)
  if (bad >= 0) return `it reports an invalid version: ${JSON.stringify(offered[bad])}`
  const usable = (versions as Version[]).filter(([major]) => major === MAJOR).sort(compareVersions)
  return usable.at(-1) ?? `it supports ${offered.join(', ')}, and this agent supports ${MAJOR}.x`
}

export function compareVersions(a: Version, b: Version): number {
  for (const at of [0, 1, 2] as const) if (a[at] !== b[at]) return a[at] - b[at]
  return 0
}

/** `1.2.3`, `v1.2` and `1` are versions; suffixes after a hyphen or plus are ignored. */
export function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?$/.exec(text.trim())
  return match ? [Number(match[1]), Number(match[2] ?? 0), Number(match[3] ?? 0)] : undefined
}
