// The version that /version and `stowage version` report. gitVersion is the supported Kubernetes version, which clients
// compare with their own; its suffix is the version of Stowage.
declare const STOWAGE_VERSION: string | undefined

export interface VersionInfo {
  readonly major: string
  readonly minor: string
  readonly gitVersion: string
  readonly gitCommit: string
  readonly gitTreeState: string
  readonly buildDate: string
  readonly goVersion: string
  readonly compiler: string
  readonly platform: string
}

export const stowageVersion = typeof STOWAGE_VERSION === 'string' ? STOWAGE_VERSION : '0.0.0-dev'

const API_MAJOR = '1'
const API_MINOR = '34'

export const versionInfo = (): VersionInfo => ({
  major: API_MAJOR,
  minor: API_MINOR,
  gitVersion: `v${API_MAJOR}.${API_MINOR}.0+stowage-${stowageVersion}`,
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: `node ${process.versions.node}`,
  compiler: 'v8',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
})
