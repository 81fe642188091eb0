// Formats a status as text.
import { stowageVersion } from '../../../apiserver/version.ts'
import { formatCount } from '../../output/units.ts'
import type { Status, StoreStatus } from './read-status.ts'

export function formatStatus(status: Status): string {
  const {
    dataDir,
    server,
    isHealthy,
    problems,
    store,
    leader,
    nodes = [],
    drivers = [],
    machine,
    certificates,
  } = status
  const rows: [string, string][] = []
  if (server?.url) rows.push(['API', server.url])
  if (server) rows.push(['health', isHealthy ? 'ok' : problems.join('; ')])
  rows.push(['data', dataDir])
  if (store) rows.push(['store', formatStore(store)])
  if (leader) rows.push(['leader', leader])
  if (nodes.length > 0) rows.push(['nodes', nodes.map((node) => formatNode(node, server?.version)).join(', ')])
  for (const { name, nodes } of drivers) rows.push(['driver', `${name} on ${nodes.join(', ')}`])
  if (Object.values(machine).some((amount) => amount > 0)) rows.push(['machine', formatMachine(machine)])
  for (const { name, expires, isExpired } of certificates)
    rows.push(['certificate', `${name} ${isExpired ? 'expired at' : 'expires'} ${expires}`])
  return `${formatHeadline(status)}\n${rows.map(([name, value]) => `  ${name.padEnd(13)}${value}\n`).join('')}`
}

function formatHeadline({ server, problems }: Status): string {
  if (!server) return `Stowage is ${problems.join('; ')}.`
  const { pid, command, version, uptimeSeconds } = server
  const versionNote = version === stowageVersion ? '' : ` (this program is ${stowageVersion})`
  return `Stowage ${version}${versionNote} is running: stowage ${command}, pid ${pid}, up for ${formatShortAge(uptimeSeconds)}.`
}

/** A node's version is shown if it differs from that of the server. */
function formatNode(
  { name, isReady, version }: { readonly name: string; readonly isReady: boolean; readonly version: string },
  serverVersion: string | undefined,
): string {
  const notes = [...(isReady ? [] : ['not ready']), ...(version === `v${serverVersion}` ? [] : [version])]
  return notes.length > 0 ? `${name} (${notes.join(', ')})` : name
}

const formatMachine = ({ podProcesses, mounts, loopDevices }: Status['machine']): string =>
  [
    `${formatCount(podProcesses, 'process', 'processes')} of pods`,
    formatCount(mounts, 'mount'),
    formatCount(loopDevices, 'loop device'),
  ].join(', ')

function formatStore({ kind, bytes, objects, revision }: StoreStatus): string {
  const parts = [
    kind,
    ...(bytes === undefined ? [] : [formatBytes(bytes)]),
    ...(objects === undefined ? [] : [formatCount(objects, 'object')]),
    ...(revision === undefined ? [] : [`revision ${revision}`]),
  ]
  return parts.join(', ')
}

/** Returns `1d2h`, `2h13m`, `13m5s` or `5s`. */
export function formatShortAge(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 60) % 60,
  ]
  if (days > 0) return `${days}d${hours}h`
  if (hours > 0) return `${hours}h${minutes}m`
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  const amount = bytes / 1024 ** unit
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`
}
