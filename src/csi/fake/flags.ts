// Parses the command line of the fake driver process.
import { parseArgs } from 'node:util'
import type { ControllerCapability, NodeCapability, VolumeExpansion } from '../facts.ts'
import { type FakePool, type FakeSettings, fakeSettings } from './settings.ts'

export interface FakeProcessFlags {
  readonly endpoint: string
  readonly controlSocket: string | undefined
  readonly stateFile: string | undefined
  readonly nodeId: string
  /** Whether to create the directories of published volumes. */
  readonly makesTargets: boolean
  readonly settings: FakeSettings
}

const USAGE = `fake-driver: an in-memory CSI driver for tests.
  --endpoint unix:///x.sock   the CSI socket (required)
  --control x.sock            the control socket: one JSON command per line
  --state FILE                keep the state in this file across restarts
  --name, --driver-version    name and version of the driver
  --capacity 100Gi            capacity of each pool
  --topology key=value[,…]    add a pool that is accessible only from this topology; repeatable
  --node-id node-1            the node that the driver runs on; repeat it for further nodes to which volumes can be attached
  --make-targets              create a directory at every target path; nothing is mounted
  --max-volumes N             maximum number of volumes attached to a node
  --without CAPABILITY        disable a controller or node capability; repeatable
  --expansion ONLINE          ONLINE, OFFLINE or none
  --mutable-keys a,b          accepted keys of mutable parameters
  --parameter-keys a,b        accepted keys of parameters (default: any)
  --secret-keys a,b           keys that the secrets of every call must have
  --maximum 10Gi              maximum size of a volume
  --round-to 1Mi              round sizes up to a multiple of this
  --when-busy abort           concurrent calls on a volume: abort (return ABORTED) or goOn (run them)
  --help, -h                  print this text
`

export function readFlags(argv: readonly string[]): FakeProcessFlags | { readonly help: string } {
  const stringOption = { type: 'string' } as const
  const stringListOption = { type: 'string', multiple: true } as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      endpoint: stringOption,
      control: stringOption,
      state: stringOption,
      name: stringOption,
      'driver-version': stringOption,
      capacity: stringOption,
      topology: stringListOption,
      'node-id': stringListOption,
      'make-targets': { type: 'boolean' },
      'max-volumes': stringOption,
      without: stringListOption,
      expansion: stringOption,
      'mutable-keys': stringOption,
      'parameter-keys': stringOption,
      'secret-keys': stringOption,
      maximum: stringOption,
      'round-to': stringOption,
      'when-busy': stringOption,
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return { help: USAGE }
  if (!values.endpoint) throw new Error(`--endpoint is required\n\n${USAGE}`)

  const nodeIds = values['node-id'] ?? ['node-1']
  const pools = createPools(parseBytes(values.capacity ?? '100Gi'), values.topology ?? [])
  const defaults = fakeSettings({ pools })
  const disabledCapabilities = values.without ?? []
  const nodes = nodeIds.map((id) => ({
    id,
    segments: pools[0]?.segments,
    maxVolumes: values['max-volumes'] ? Number(values['max-volumes']) : undefined,
  }))
  return {
    endpoint: values.endpoint,
    controlSocket: values.control,
    stateFile: values.state,
    nodeId: nodeIds[0]!,
    makesTargets: values['make-targets'] ?? false,
    settings: {
      ...defaults,
      name: values.name ?? defaults.name,
      version: values['driver-version'] ?? defaults.version,
      controller: defaults.controller.filter((name: ControllerCapability) => !disabledCapabilities.includes(name)),
      node: defaults.node.filter((name: NodeCapability) => !disabledCapabilities.includes(name)),
      expansion: values.expansion === undefined ? defaults.expansion : parseExpansion(values.expansion),
      nodes,
      mutableKeys: values['mutable-keys'] === undefined ? defaults.mutableKeys : splitList(values['mutable-keys']),
      parameterKeys: values['parameter-keys'] === undefined ? undefined : splitList(values['parameter-keys']),
      secretKeys: splitList(values['secret-keys'] ?? ''),
      maximumBytes: values.maximum === undefined ? defaults.maximumBytes : parseBytes(values.maximum),
      roundToBytes: values['round-to'] === undefined ? defaults.roundToBytes : parseBytes(values['round-to']),
      whenBusy: values['when-busy'] === undefined ? defaults.whenBusy : parseWhenBusy(values['when-busy']),
    },
  }
}

function createPools(capacityBytes: number, topologies: readonly string[]): FakePool[] {
  if (topologies.length === 0) return [{ name: 'pool', capacityBytes }]
  return topologies.map((topology) => ({
    name: `pool-${topology.replaceAll(/[^A-Za-z0-9]+/g, '-')}`,
    capacityBytes,
    segments: Object.fromEntries(splitList(topology).map((pair) => pair.split('=', 2) as [string, string])),
  }))
}

function parseExpansion(text: string): VolumeExpansion[] {
  if (text === 'none') return []
  if (text === 'ONLINE' || text === 'OFFLINE') return [text]
  throw new Error(`--expansion must be ONLINE, OFFLINE or none, not "${text}"`)
}

function parseWhenBusy(text: string): FakeSettings['whenBusy'] {
  if (text === 'abort' || text === 'goOn') return text
  throw new Error(`--when-busy must be abort or goOn, not "${text}"`)
}

const splitList = (text: string) => text.split(',').filter((item) => item !== '')

const UNITS: Readonly<Record<string, number>> = { '': 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 }

function parseBytes(text: string): number {
  const [, digits, unit = ''] = /^(\d+)(Ki|Mi|Gi|Ti)?$/.exec(text) ?? []
  if (digits === undefined)
    throw new Error(`"${text}" is not a size; use a number of bytes, or a number with Ki, Mi, Gi or Ti`)
  return Number(digits) * UNITS[unit]!
}
