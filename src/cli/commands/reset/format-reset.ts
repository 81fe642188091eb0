// Formats the plan and the result of a reset as text.
import { formatCount } from '../../output/units.ts'
import type { ResetPlan, ResetResult } from './reset.ts'
import type { VolumeOnDisk } from './volumes-on-disk.ts'

/** Longer lists are cut off. `--output json` prints all. */
const LINES_MAX = 20

export function formatPlan(plan: ResetPlan): string {
  if (plan.isEmpty) return `There is nothing to reset in ${plan.dataDir}.\n${formatForeignEntries(plan)}`
  const { serverPid, processes, mounts, loopDevices, deletedVolumes, contexts, outerPkiDir } = plan
  const lines = [
    ...(serverPid === undefined ? [] : [`stop the server (pid ${serverPid})`]),
    ...(processes.length === 0
      ? []
      : [`end ${formatCount(processes.length, 'process', 'processes')} of pods and drivers`]),
    ...(mounts.length === 0 ? [] : [`unmount ${formatCount(mounts.length, 'mount')}`]),
    ...(loopDevices.length === 0 ? [] : [`detach ${formatCount(loopDevices.length, 'loop device')}`]),
    `delete ${formatCount(deletedVolumes.length, 'volume')} with their data`,
    ...truncateLines(deletedVolumes.map((volume) => `  ${formatVolume(volume)}`)),
    'delete all objects, credentials and logs of the server',
    ...contexts.map(({ file, context }) => `remove the context ${JSON.stringify(context)} from ${file}`),
  ]
  const pkiNote = outerPkiDir ? `Left: the credentials in ${outerPkiDir}, outside the data directory.\n` : ''
  return (
    `Reset of ${plan.dataDir} will\n${lines.map((line) => `  ${line}\n`).join('')}` +
    `${formatKeptVolumes(plan.keptVolumes)}${formatForeignEntries(plan)}${pkiNote}`
  )
}

export function formatResult({ dataDir, stoppedPid, ...result }: ResetResult): string {
  const { processes, mounts, loopDevices, cgroups, deletedVolumes, keptVolumes, problems } = result
  const stopNote = stoppedPid === undefined ? '' : `stopped the server (pid ${stoppedPid}), `
  return (
    `Reset ${dataDir}: ${stopNote}ended ${formatCount(processes, 'process', 'processes')}, unmounted ${formatCount(mounts, 'mount')}, ` +
    `detached ${formatCount(loopDevices, 'loop device')}, removed ${formatCount(cgroups, 'cgroup')}, ` +
    `deleted ${formatCount(deletedVolumes.length, 'volume')}.\n${formatKeptVolumes(keptVolumes)}${problems.map((text) => `${text}\n`).join('')}`
  )
}

function formatKeptVolumes(volumes: readonly VolumeOnDisk[]): string {
  if (volumes.length === 0) return ''
  const lines = truncateLines(volumes.map((volume) => `  ${formatVolume(volume)}`))
  return `Kept (--including-retained deletes them):\n${lines.map((line) => `${line}\n`).join('')}`
}

const formatForeignEntries = ({ foreignEntries }: ResetPlan): string =>
  foreignEntries.length === 0
    ? ''
    : `Left, because Stowage did not create ${foreignEntries.length === 1 ? 'it' : 'them'}: ${foreignEntries.join(', ')}\n`

function formatVolume({ name, claim, path, keepReason }: VolumeOnDisk): string {
  const claimNote = claim ? ` of claim ${claim}` : ''
  return keepReason ? `${path}: ${name}${claimNote}, ${keepReason}` : `${name}${claimNote}`
}

const truncateLines = (lines: readonly string[]): string[] =>
  lines.length <= LINES_MAX ? [...lines] : [...lines.slice(0, LINES_MAX), `  … and ${lines.length - LINES_MAX} more`]
