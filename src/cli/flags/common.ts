// Flags that several commands share, and the parsers of their values. An invalid value causes a UsageError with the
// expected format.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { isQuantity, quantitySign, quantityToBytes } from '../../api/quantity.ts'
import { parseDuration } from '../../base/duration.ts'
import { LOG_FORMATS, LOG_LEVELS } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'
import {
  LOST_VOLUME_POLICY_FORMS,
  type LostVolumePolicy,
  parseLostVolumePolicy,
} from '../../volumes/lost-volume-policy.ts'
import { PLACEMENT_FORMS, type Placement, parsePlacement } from '../../volumes/placement.ts'
import { OUTPUT_FORMATS } from '../output/format-output.ts'
import { leaseTimeOptions } from './lease-times.ts'

export const logLevelOption = (defaultLevel = 'info') =>
  new Option(
    '--log-level <level>',
    `minimum level of log messages on standard error (default: ${defaultLevel})`,
  ).choices(LOG_LEVELS)

export const logFormatOption = () =>
  new Option(
    '--log-format <format>',
    'format of log messages: human-readable text, or one JSON object per line (default: text on a terminal, otherwise json)',
  ).choices(LOG_FORMATS)

export const outputOption = () =>
  new Option('-o, --output <format>', 'format of the output').choices(OUTPUT_FORMATS).default('text')

export const kubeconfigOption = () =>
  new Option(
    '--kubeconfig <file>',
    'kubeconfig for the API server (default: $KUBECONFIG, or the in-cluster configuration)',
  )

export const dataDirOption = () => new Option('--data-dir <dir>', `data directory (default: ${defaultDataDir()})`)

export const pkiDirOption = () =>
  new Option('--pki-dir <dir>', 'directory of the keys and certificates of the server (default: DATA-DIR/pki)')

/** Collects the values of a flag that may be repeated. */
export const collectValues = (value: string, previousValues: readonly string[] = []): string[] => [
  ...previousValues,
  value,
]

export const driverSocketOption = () =>
  new Option(
    '--driver-socket <path>',
    'run the controllers of the CSI driver at this socket; may be repeated',
  ).argParser(collectValues)

export const capacityReservationOption = () =>
  new Option('--capacity-reservation <on|off>', 'reserve capacity for scheduled volumes that are not provisioned yet')
    .choices(['on', 'off'])
    .default('on')

export const placementOption = () =>
  new Option('--placement <policy>', `placement policy for volumes whose class does not set one: ${PLACEMENT_FORMS}`)

export function parsePlacementFlag(text: string | undefined): Placement | undefined {
  if (text === undefined) return undefined
  const parsed = parsePlacement(text)
  if (parsed.is === 'invalid') throw new UsageError(`--placement ${JSON.stringify(text)}: ${parsed.message}`)
  return parsed.placement
}

export const lostVolumePolicyOption = () =>
  new Option(
    '--lost-volume-policy <policy>',
    `policy for volumes that existed on a lost node only, if their class does not set one: ${LOST_VOLUME_POLICY_FORMS} (default: wait)`,
  )

export function parseLostVolumePolicyFlag(text: string | undefined): LostVolumePolicy | undefined {
  if (text === undefined) return undefined
  const parsed = parseLostVolumePolicy(text)
  if (parsed.is === 'invalid') throw new UsageError(`--lost-volume-policy: ${parsed.message}`)
  return parsed.policy
}

/** Adds the options that `controllers`, `scheduler` and `capacity-cleanup` share. */
export function addControllerProcessOptions(command: Command): Command {
  command.option('--no-leader-election', 'run without a lease, even if another process runs the same controllers')
  for (const option of leaseTimeOptions()) command.addOption(option)
  return command
    .option('--http-endpoint <host:port>', 'address on which to serve /metrics, /healthz, /readyz and /operations')
    .addOption(logLevelOption())
    .addOption(logFormatOption())
}

/** Returns `$XDG_DATA_HOME/stowage`, as in the XDG base directory specification. */
export const defaultDataDir = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_DATA_HOME?.startsWith('/') ? env.XDG_DATA_HOME : join(homedir(), '.local', 'share'), 'stowage')

export function parseDataDir(flag: string | undefined): string {
  if (flag === '') throw new UsageError('--data-dir is empty: specify a directory, or omit the flag')
  return resolve(flag ?? defaultDataDir())
}

const POOL_BYTES_MIN = 1024 ** 2

export function parsePoolSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = isQuantity(text) && quantitySign(text) > 0 ? Number(quantityToBytes(text)) : Number.NaN
  if (!Number.isSafeInteger(bytes) || bytes < POOL_BYTES_MIN)
    throw new UsageError(`--pool-size ${JSON.stringify(text)}: expected a size of 1Mi or more, such as 10Gi`)
  return bytes
}

export const maxVolumesOption = (subject: string) =>
  new Option(
    '--max-volumes-per-node <number>',
    `number of volumes that ${subject} can stage at the same time; the scheduler observes it (default: unlimited)`,
  )

/** CSINode has the limit as an int32. */
const VOLUMES_PER_NODE_MAX = 2 ** 31 - 1

export function parseMaxVolumes(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const count = Number(text)
  if (/^\d+$/.test(text) && count > 0 && count <= VOLUMES_PER_NODE_MAX) return count
  throw new UsageError(
    `--max-volumes-per-node ${JSON.stringify(text)}: expected a number from 1 to ${VOLUMES_PER_NODE_MAX}; omit the flag for no limit`,
  )
}

export function parseDurationFlag(flag: string, text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined) return ms
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a duration such as 90s, 10m or 1h`)
}

/** The lease of a node agent must be renewed at least once in this time, even on a busy machine. */
const NODE_GRACE_MS_MIN = 2_000

export const nodeMonitorGraceOption = () =>
  new Option(
    '--node-monitor-grace-period <duration>',
    'how long a node may be silent before it counts as unreachable; agents must renew their leases several times within it (stowage node --node-lease-duration)',
  ).default('40s')

export function parseNodeMonitorGrace(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseNodeTime('--node-monitor-grace-period', text)
}

/** Parses the grace period or the lease duration of a node. Throws if it is shorter than 2 s. */
export function parseNodeTime(flag: string, text: string): number {
  const ms = parseDurationFlag(flag, text)
  if (ms >= NODE_GRACE_MS_MIN) return ms
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected 2s or more`)
}

/** Both `up` and `controllers` delete the capacity objects of nodes that no longer run the driver. */
export const capacityGoneForOption = () =>
  new Option(
    '--capacity-gone-for <duration>',
    'how long a driver must be missing on a node before its capacity objects are deleted',
  ).default('10m')
