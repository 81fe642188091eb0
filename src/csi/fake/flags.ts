// What kind of storage the fake driver's process is, from its command line.
import { parseArgs } from 'node:util'
import type { ControllerCapability, NodeCapability, VolumeExpansion } from '../facts.ts'
import { type FakePool, type FakeSettings, fakeSettings } from './settings.ts'

export interface FakeProcessFlags {
  readonly endpoint: string
  readonly control: string | undefined
  readonly stateFile: string | undefined
  readonly nodeId: string
  readonly settings: FakeSettings
}

const USAGE = `fake-driver: a CSI driver without storage, for tests.
  --endpoint unix:///x.sock   where it answers (required)
  --control x.sock            where it takes commands: one JSON object per line
  --state FILE                keeps what it holds, over restarts
  --name, --driver-version    what it is called
  --capacity 100Gi            the size of each of its pools
  --topology key=value[,…]    a pool reached from there only; may be repeated
  --node-id node-1            the node it runs on
  --max-volumes N             how many volumes can be attached to a node
  --without CAPABILITY        takes a controller or node capability away; may be repeated
  --expansion ONLINE          or OFFLINE, or none
  --mutable-keys a,b          accepted mutable parameters
  --parameter-keys a,b        accepted parameters (default: any)
  --secret-keys a,b           secrets that calls must carry
  --maximum 10Gi              the largest volume
  --round-to 1Mi              sizes are rounded up to multiples of this
  --when-busy abort           or goOn
`

export function readFlags(argv: readonly string[]): FakeProcessFlags | { readonly help: string } {
  const text = { type: 'string' } as const
  const many = { type: 'string', multiple: true } as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      endpoint: text,
      control: text,
      state: text,
      name: text,
      'driver-version': text,
      capacity: text,
      topology: many,
      'node-id': text,
      'max-volumes': text,
      without: many,
      expansion: text,
      'mutable-keys': text,
      'parameter-keys': text,
      'secret-keys': text,
      maximum: text,
      'round-to': text,
      'when-busy': text,
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return { help: USAGE }
  if (!values.endpoint) throw new Error(`--endpoint is missing\n\n${USAGE}`)

  const nodeId = values['node-id'] ?? 'node-1'
  const pools = poolsOf(bytesOf(values.capacity ?? '100Gi'), values.topology ?? [])
  const usual = fakeSettings({ pools })
  const without = values.without ?? []
  const node = {
    id: nodeId,
    ...(pools[0]?.segments ? { segments: pools[0].segments } : {}),
    ...(values['max-volumes'] ? { maxVolumes: Number(values['max-volumes']) } : {}),
  }
  return {
    endpoint: values.endpoint,
    control: values.control,
    stateFile: values.state,
    nodeId,
    settings: {
      ...usual,
      name: values.name ?? usual.name,
      version: values['driver-version'] ?? usual.version,
      controller: usual.controller.filter((name: ControllerCapability) => !without.includes(name)),
      node: usual.node.filter((name: NodeCapability) => !without.includes(name)),
      expansion: values.expansion === undefined ? usual.expansion : expansionOf(values.expansion),
      nodes: [node],
      mutableKeys: values['mutable-keys'] === undefined ? usual.mutableKeys : listOf(values['mutable-keys']),
      parameterKeys: values['parameter-keys'] === undefined ? undefined : listOf(values['parameter-keys']),
      secretKeys: listOf(values['secret-keys'] ?? ''),
      maximumBytes: values.maximum === undefined ? usual.maximumBytes : bytesOf(values.maximum),
      roundToBytes: values['round-to'] === undefined ? usual.roundToBytes : bytesOf(values['round-to']),
      whenBusy: values['when-busy'] === 'goOn' ? 'goOn' : 'abort',
    },
  }
}

function poolsOf(capacityBytes: number, topologies: readonly string[]): FakePool[] {
  if (topologies.length === 0) return [{ name: 'pool', capacityBytes }]
  return topologies.map((topology) => ({
    name: `pool-${topology.replaceAll(/[^A-Za-z0-9]+/g, '-')}`,
    capacityBytes,
    segments: Object.fromEntries(listOf(topology).map((pair) => pair.split('=', 2) as [string, string])),
  }))
}

function expansionOf(text: string): VolumeExpansion[] {
  if (text === 'none') return []
  if (text === 'ONLINE' || text === 'OFFLINE') return [text]
  throw new Error(`--expansion is ONLINE, OFFLINE or none, not "${text}"`)
}

const listOf = (text: string) => text.split(',').filter((word) => word !== '')

const UNITS: Readonly<Record<string, number>> = { '': 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 }

function bytesOf(text: string): number {
  const [, digits, unit = ''] = /^(\d+)(Ki|Mi|Gi|Ti)?$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`"${text}" is not a size; write bytes, or a number with Ki, Mi, Gi or Ti`)
  return Number(digits) * UNITS[unit]!
}
