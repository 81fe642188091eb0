// Merges the arguments of a driver's upstream sidecars into those of one `stowage sidecar`. Pure.
import { UsageError } from '../../../base/usage-error.ts'
import { IGNORED_BOOLEAN_FLAGS, IGNORED_VALUE_FLAGS } from '../../flags/ignored-flags.ts'
import { IGNORED_FLAGS, SIDECAR_FLAGS } from './flags.ts'

/** The upstream sidecars, in the order in which their values are preferred. */
export const UPSTREAM_SIDECARS = ['provisioner', 'resizer', 'attacher', 'health-monitor'] as const
export type UpstreamSidecar = (typeof UPSTREAM_SIDECARS)[number]

/** The image names of the upstream sidecars. */
export const IMAGE_NAMES: Readonly<Record<UpstreamSidecar, string>> = {
  provisioner: 'csi-provisioner',
  resizer: 'csi-resizer',
  attacher: 'csi-attacher',
  'health-monitor': 'csi-external-health-monitor-controller',
}

/** The arguments of the containers that are replaced. */
export type SidecarArguments = Readonly<Partial<Record<UpstreamSidecar, readonly string[]>>>

export interface MergedArguments {
  readonly args: readonly string[]
  /** Values that are omitted, and what the user must do. */
  readonly notes: readonly string[]
}

type FlagValues = ReadonlyMap<string, string>

/** The value of a flag of one sidecar. */
interface FlagSetting {
  readonly sidecar: UpstreamSidecar
  readonly value: string
}

/** Throws a UsageError with the sidecar and the flag if a flag is unknown or has no value. */
export function mergeArguments(sidecarArguments: SidecarArguments): MergedArguments {
  const sidecars = UPSTREAM_SIDECARS.filter((sidecar) => sidecarArguments[sidecar])
  const values = new Map(sidecars.map((sidecar) => [sidecar, parseArguments(sidecar, sidecarArguments[sidecar] ?? [])]))
  const flags = [...new Set([...values.values()].flatMap((flagValues) => [...flagValues.keys()]))]
  const notes: string[] = []
  const args = flags.flatMap((flag) => mergeFlag(flag, values, notes))
  const isElecting = args.includes('--leader-election')
  if (!isElecting)
    notes.push(
      'Without --leader-election, pods of the old and the new version must not run at the same time: use strategy Recreate.',
    )
  return {
    args: ['sidecar', `--controllers=${sidecars.join()}`, ...args, ...(isElecting ? ['--hold-upstream-leases'] : [])],
    notes,
  }
}

/** Flags with a variant for each controller, and the sidecars that have them. */
const FLAGS_BY_CONTROLLER: Readonly<Record<string, readonly UpstreamSidecar[]>> = {
  timeout: UPSTREAM_SIDECARS,
  'retry-interval-start': ['provisioner', 'resizer', 'attacher'],
  'retry-interval-max': ['provisioner', 'resizer', 'attacher'],
}

/** Limits of all requests of a process, with the defaults of the upstream sidecars. */
const SUMMED_FLAGS: Readonly<Record<string, number>> = { 'kube-api-qps': 5, 'kube-api-burst': 10 }

/** The number of workers of each upstream sidecar: the flag and its default. */
const WORKERS: Readonly<Record<UpstreamSidecar, readonly [flag: string, upstreamDefault: number]>> = {
  provisioner: ['worker-threads', 100],
  resizer: ['workers', 10],
  attacher: ['worker-threads', 10],
  'health-monitor': ['worker-threads', 10],
}

/** Returns the sum of the workers of all sidecars, which the controllers of one process share. */
const sumWorkers = (values: ReadonlyMap<UpstreamSidecar, FlagValues>): number =>
  [...values].reduce((sum, [sidecar, flagValues]) => {
    const [flag, upstreamDefault] = WORKERS[sidecar]
    return sum + Number(flagValues.get(flag) ?? upstreamDefault)
  }, 0)

function mergeFlag(flag: string, values: ReadonlyMap<UpstreamSidecar, FlagValues>, notes: string[]): string[] {
  const settings = [...values].flatMap(([sidecar, flagValues]): FlagSetting[] => {
    const value = flagValues.get(flag)
    return value === undefined ? [] : [{ sidecar, value }]
  })
  const distinctValues = new Set(settings.map(({ value }) => value))
  const [firstSetting] = settings
  const owners = FLAGS_BY_CONTROLLER[flag]?.filter((sidecar) => values.has(sidecar))
  if (owners) {
    if (distinctValues.size === 1 && settings.length === owners.length) return [formatFlag(flag, firstSetting!.value)]
    return settings.map(({ sidecar, value }) => formatFlag(`${sidecar}-${flag}`, value))
  }
  if (flag === 'worker-threads') {
    const limits = settings.map(({ sidecar, value }) => formatFlag(`${sidecar}-${flag}`, value))
    return [formatFlag(flag, String(sumWorkers(values))), ...limits]
  }
  const upstreamDefault = SUMMED_FLAGS[flag]
  if (upstreamDefault !== undefined) {
    const amounts = [...values.values()].map((flagValues) => Number(flagValues.get(flag) ?? upstreamDefault))
    const isUnlimited = amounts.some((amount) => amount < 0)
    return [formatFlag(flag, String(isUnlimited ? -1 : amounts.reduce((sum, amount) => sum + amount, 0)))]
  }
  if (flag === 'v') return [formatFlag(flag, String(Math.max(...settings.map(({ value }) => Number(value)))))]
  // A value such as $(ELECT) counts as true, because two pods without an election would work at the same time.
  if (flag === 'leader-election') return settings.some(({ value }) => value !== 'false') ? ['--leader-election'] : []
  if (flag === 'feature-gates') return [formatFlag(flag, mergeGates(settings, notes))]
  for (const { sidecar, value } of settings) {
    if (value !== firstSetting!.value) {
      notes.push(
        `${formatFlag(flag, value)} of ${IMAGE_NAMES[sidecar]} is left out: ` +
          `${IMAGE_NAMES[firstSetting!.sidecar]} has ${formatFlag(flag, firstSetting!.value)}.`,
      )
    }
  }
  return [formatFlag(flag, firstSetting!.value)]
}

function mergeGates(settings: readonly FlagSetting[], notes: string[]): string {
  const gates = new Map<string, FlagSetting>()
  for (const { sidecar, value: text } of settings) {
    for (const [name, value] of parseGates(text)) {
      const preferredSetting = gates.get(name)
      if (!preferredSetting) gates.set(name, { sidecar, value })
      else if (preferredSetting.value !== value)
        notes.push(
          `The feature gate ${name}=${value} of ${IMAGE_NAMES[sidecar]} is left out: ` +
            `${IMAGE_NAMES[preferredSetting.sidecar]} has ${name}=${preferredSetting.value}.`,
        )
    }
  }
  return [...gates].map(([name, { value }]) => `${name}=${value}`).join()
}

/** Parses `A=true,B=false`. The last value of a gate wins. */
const parseGates = (text: string): FlagValues =>
  new Map(
    text.split(',').map((gate): [string, string] => {
      const [name = '', value = ''] = gate.split('=').map((part) => part.trim())
      return [name, value]
    }),
  )

const formatFlag = (flag: string, value: string): string =>
  BOOLEAN_FLAGS.has(flag) && value === 'true' ? `--${flag}` : `--${flag}=${value}`

const nameOf = (flag: string): string => flag.split(' ')[0]!.slice(2)
const SIDECAR_FLAG_NAMES = Object.values(SIDECAR_FLAGS).map(({ flag }) => flag)
const BOOLEAN_FLAGS = new Set(
  [...SIDECAR_FLAG_NAMES.filter((flag) => flag.includes('[')), ...IGNORED_BOOLEAN_FLAGS].map(nameOf),
)
const VALUE_FLAGS = new Set([
  ...SIDECAR_FLAG_NAMES.filter((flag) => !flag.includes('[')).map(nameOf),
  ...[...IGNORED_VALUE_FLAGS, ...IGNORED_FLAGS].map(nameOf),
  ...['v', 'log-level', 'log-format', 'logging-format'],
])
const IGNORED_NAMES = new Set([...IGNORED_BOOLEAN_FLAGS, ...IGNORED_VALUE_FLAGS, ...IGNORED_FLAGS].map(nameOf))

/** The values of a boolean flag that Go accepts. */
const TRUE_TEXTS: readonly string[] = ['1', 't', 'T', 'true', 'TRUE', 'True']
const FALSE_TEXTS: readonly string[] = ['0', 'f', 'F', 'false', 'FALSE', 'False']

/** Returns `true` or `false`, or the text if it is neither in Go, for example $(VARIABLE). */
function canonicalBoolean(text: string): string {
  if (TRUE_TEXTS.includes(text)) return 'true'
  return FALSE_TEXTS.includes(text) ? 'false' : text
}

/**
 * Parses flags as Go's flag package does: one dash or two, and the value after `=` or, unless the flag is boolean, in the next
 * argument.
 */
function parseArguments(sidecar: UpstreamSidecar, args: readonly string[]): FlagValues {
  const values = new Map<string, string>()
  for (let index = 0; index < args.length; index++) {
    const [, name = '', , inlineValue] = /^--?([A-Za-z][\w-]*)(=(.*))?$/s.exec(args[index]!) ?? []
    const isBoolean = BOOLEAN_FLAGS.has(name)
    if (!isBoolean && !VALUE_FLAGS.has(name)) {
      throw new UsageError(
        `The argument ${JSON.stringify(args[index])} of ${IMAGE_NAMES[sidecar]} is not a flag of stowage sidecar.`,
      )
    }
    const text = inlineValue ?? (isBoolean ? 'true' : args[++index])
    if (text === undefined) throw new UsageError(`The flag --${name} of ${IMAGE_NAMES[sidecar]} has no value.`)
    if (IGNORED_NAMES.has(name)) continue
    const value = isBoolean ? canonicalBoolean(text) : text
    const previousValue = name === 'feature-gates' ? values.get(name) : undefined
    values.set(name, previousValue === undefined ? value : `${previousValue},${value}`)
  }
  return values
}
