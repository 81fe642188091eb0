// Describes an action in a few words for timelines: `alice creates claim team-a/c1 (4Gi, net-now, silver)`. Accepts any
// object, because shrinking may have removed parts of it.

import { NAMESPACES } from './catalog.ts'
import type { Action, Fault, KindName, Manifest, Ref, UserAction } from './plan.ts'

export function describeAction(action: Action): string {
  switch (action.do) {
    case 'create':
    case 'create together':
    case 'edit':
    case 'delete':
    case 'revert':
    case 'set gate':
    case 'import':
      return describeUserAction(action)
    default:
      return describeFault(action)
  }
}

function describeUserAction(action: UserAction): string {
  switch (action.do) {
    case 'create': {
      const ref = refOf(action.object)
      return `${userOf(action.kind, ref)} ${action.dryRun ? 'tries to create' : 'creates'} ${action.kind} ${nameOf(ref)}${parenthesize(factsOf(action.kind, action.object))}`
    }
    case 'create together': {
      const refs = action.objects.map(refOf)
      const [firstRef = { name: 'nothing' }] = refs
      return `${userOf(action.kind, firstRef)} creates ${action.kind} ${refs.map(nameOf).join(' and ')} in one transaction`
    }
    case 'edit':
      return `${userOf(action.kind, action.ref)} edits ${describeObject(action.kind, action.ref)} (${action.purpose}): ${formatFields(action.patch)}`
    case 'delete': {
      const options = [
        action.graceSeconds === 0 && 'at once',
        action.graceSeconds !== undefined && action.graceSeconds > 0 && `within ${action.graceSeconds} s`,
        action.propagation === 'Foreground' && 'foreground',
        action.propagation === 'Orphan' && 'orphaning dependents',
      ]
      return `${userOf(action.kind, action.ref)} deletes ${describeObject(action.kind, action.ref)}${parenthesize(options)}`
    }
    case 'revert':
      return `${userOf('claim', action.ref)} resets the spec of claim ${nameOf(action.ref)} to the values in its status`
    case 'set gate':
      return `${ADMIN} turns ${action.gate} ${action.isOn ? 'on' : 'off'}`
    case 'import': {
      const facts = factsOf('volume', action.object)
      return `${ADMIN} imports ${action.name} of ${action.driver} as volume ${nameOf(refOf(action.object))}${parenthesize(facts)}`
    }
  }
}

const ADMIN = 'admin'
const USERS: Readonly<Record<string, string>> = { [NAMESPACES[0]]: 'alice', [NAMESPACES[1]]: 'bob' }
const USER_KINDS: readonly KindName[] = ['claim', 'pod', 'config map', 'stateful set']

const userOf = (kind: KindName, { namespace = '' }: Ref): string =>
  USER_KINDS.includes(kind) ? (USERS[namespace] ?? 'a user') : ADMIN

const nameOf = ({ namespace, name }: Ref): string => (namespace ? `${namespace}/${name}` : name)
const describeObject = (kind: KindName, ref: Ref): string =>
  kind === 'volume' && ref.namespace ? `the volume of claim ${nameOf(ref)}` : `${kind} ${nameOf(ref)}`

function refOf(object: Manifest): Ref {
  const { namespace, name } = (object.metadata ?? {}) as Partial<Ref>
  return { ...(namespace ? { namespace } : {}), name: name ?? 'without a name' }
}

type Facts = readonly (string | false | undefined)[]

function parenthesize(facts: Facts): string {
  const presentFacts = facts.filter((fact) => fact)
  return presentFacts.length > 0 ? ` (${presentFacts.join(', ')})` : ''
}

/** Returns the most important fields of an object. */
function factsOf(kind: KindName, object: Manifest): Facts {
  const spec = fieldOf(object, 'spec')
  switch (kind) {
    case 'claim':
      return claimFacts(spec)
    case 'pod':
      return podFacts(spec)
    case 'volume':
      return [
        textOfField(fieldOf(spec, 'capacity'), 'storage'),
        textOfField(spec, 'storageClassName'),
        textOfField(spec, 'persistentVolumeReclaimPolicy'),
        spec.volumeMode === 'Block' && 'Block',
        spec.claimRef !== undefined && `for ${nameOf(refOf({ metadata: spec.claimRef }))}`,
      ]
    case 'stateful set':
      return [
        `${spec.replicas} replicas`,
        textOfField(spec, 'podManagementPolicy'),
        textOfField(fieldOf(spec, 'updateStrategy'), 'type'),
        formatFields(spec.persistentVolumeClaimRetentionPolicy ?? {}),
      ]
    case 'quota':
      return [
        ...Object.entries(fieldOf(spec, 'hard')).map(([key, value]) => `${key} ${value}`),
        spec.scopes !== undefined && formatFields(spec.scopes),
        spec.scopeSelector !== undefined && formatFields(spec.scopeSelector),
      ]
    case 'limit range':
      return [formatFields(spec.limits ?? [])]
    case 'storage class':
      return [
        textOfField(object, 'provisioner'),
        textOfField(object, 'volumeBindingMode'),
        textOfField(object, 'reclaimPolicy'),
      ]
    case 'attributes class':
      return [textOfField(object, 'driverName'), formatFields(object.parameters ?? {})]
    default:
      return []
  }
}

function claimFacts(spec: Manifest): Facts {
  const { storage, ...amounts } = fieldOf(fieldOf(spec, 'resources'), 'requests')
  const { accessModes } = spec
  return [
    String(storage ?? 'no size'),
    spec.storageClassName === '' ? 'class ""' : textOfField(spec, 'storageClassName'),
    textOfField(spec, 'volumeAttributesClassName'),
    ...Object.entries(amounts).map(([key, value]) => `${key} ${value}`),
    Array.isArray(accessModes) && accessModes.join() !== 'ReadWriteOnce' && accessModes.join('+'),
    spec.volumeMode === 'Block' && 'Block',
    spec.volumeName !== undefined && `volume ${spec.volumeName}`,
    spec.selector !== undefined && `selecting ${formatFields(spec.selector)}`,
    spec.dataSource !== undefined && `copy of ${textOfField(fieldOf(spec, 'dataSource'), 'name') ?? 'something'}`,
  ]
}

function podFacts(spec: Manifest): Facts {
  const volumes = Array.isArray(spec.volumes) ? (spec.volumes as Manifest[]) : []
  return [
    ...volumes.map((volume) => {
      const claim = textOfField(fieldOf(volume, 'persistentVolumeClaim'), 'claimName')
      if (claim !== undefined) return claim
      const template = fieldOf(fieldOf(fieldOf(volume, 'ephemeral'), 'volumeClaimTemplate'), 'spec')
      return `ephemeral ${claimFacts(template)
        .filter((fact) => fact)
        .join(' ')}`
    }),
    spec.nodeName !== undefined && `on ${spec.nodeName}`,
    spec.nodeSelector !== undefined && `on nodes with ${formatFields(spec.nodeSelector)}`,
    spec.schedulerName !== undefined && `placed by ${spec.schedulerName}`,
  ]
}

function fieldOf(object: Manifest, key: string): Manifest {
  const value = object[key]
  return typeof value === 'object' && value !== null ? (value as Manifest) : {}
}

function textOfField(object: Manifest, key: string): string | undefined {
  const value = object[key]
  return value === undefined || value === '' ? undefined : String(value)
}

/** Returns a text such as `spec.resources.requests.storage=4Gi`. Lists, and objects with several fields, are JSON. */
function formatFields(value: unknown): string {
  const path: string[] = []
  let inner = value
  while (typeof inner === 'object' && inner !== null && !Array.isArray(inner)) {
    const [firstEntry, ...otherEntries] = Object.entries(inner)
    if (!firstEntry || otherEntries.length > 0) break
    path.push(firstEntry[0])
    inner = firstEntry[1]
  }
  const text = typeof inner === 'string' ? inner : (JSON.stringify(inner) ?? 'nothing')
  return path.length > 0 ? `${path.join('.')}=${text}` : text
}

function describeFault(action: Fault): string {
  switch (action.do) {
    case 'crash':
      return `${action.process} crashes for ${formatDuration(action.downMs)}`
    case 'freeze':
      return `${action.process} freezes for ${formatDuration(action.ms)}`
    case 'jump clock':
      return `the clock of ${action.process} jumps ${action.byMs < 0 ? 'back' : 'ahead'} by ${formatDuration(Math.abs(action.byMs))}`
    case 'cut power':
      return `${action.node} has no power for ${formatDuration(action.downMs)}${action.isOutOfService ? ', tainted as out of service' : ''}`
    case 'break watches':
      return 'all watches break'
    case 'cut history':
      return `the watches${action.plural ? ` of ${action.plural}` : ''}${action.process ? ` of ${action.process}` : ''} deliver nothing for ${formatDuration(action.ms)}, then break and cannot resume (410)`
    case 'refuse writes':
      return `the disk refuses writes for ${formatDuration(action.ms)}`
    case 'lose node': {
      const loss = { power: 'loses power', split: 'is cut off from the server', suspend: 'is suspended' }[action.how]
      const fence = action.fenceMs === undefined ? '' : `, is fenced after ${formatDuration(action.fenceMs)}`
      return `${action.node} ${loss}${fence}, ${action.backMs === undefined ? 'for good' : `and returns after ${formatDuration(action.backMs)}`}`
    }
    case 'bad network': {
      const ofProcess = action.process ? ` of ${action.process}` : ''
      const ofReplies = action.only === 'replies' ? ' of the replies to writes' : ''
      return `the network${ofProcess} loses ${Math.round(action.lose * 100)} %${ofReplies} for ${formatDuration(action.ms)}`
    }
    case 'driver fails':
      return `${action.driver} answers ${action.method} with ${action.code}${action.times > 1 ? `, ${action.times} times` : ''}`
    case 'driver hangs':
      return `${action.driver} hangs in ${action.method} for ${formatDuration(action.ms)}`
    case 'lose replies':
      return `replies of ${action.driver} are lost for ${formatDuration(action.ms)}`
    case 'fill pool':
      return `the pool of ${action.driver} is full for ${formatDuration(action.ms)}`
    case 'lose state':
      return `${action.driver} loses all its volumes`
    case 'report late':
      return `${action.driver} reports old capacity for ${formatDuration(action.ms)}`
    case 'deny':
      return `the server denies ${action.verbs.join(', ')} on ${action.plural} for ${formatDuration(action.ms)}`
    case 'stop serving':
      return `the server does not serve ${action.plural} for ${formatDuration(action.ms)}`
  }
}

/** Returns a text such as `40 s`, `1.5 s` or `2.5 min`. */
function formatDuration(ms: number): string {
  const [amount, unit] = ms < 1_000 ? [ms, 'ms'] : ms < 120_000 ? [ms / 1_000, 's'] : [ms / 60_000, 'min']
  return `${Number(amount.toFixed(1))} ${unit}`
}
