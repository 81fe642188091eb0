// An act in a few words, for timelines: `alice creates claim team-a/c1 (4Gi, net-now, silver)`. Whatever an act holds,
// also when shrinking has taken parts of it away, there are words for it.
import type { Act, FaultAct, KindName, Named, ObjectText, PeopleAct } from './plan.ts'
import { NAMESPACES } from './universe.ts'

export function textOfAct(act: Act): string {
  switch (act.do) {
    case 'create':
    case 'edit':
    case 'delete':
    case 'go back':
    case 'switch gate':
    case 'import':
      return textOfPeople(act)
    default:
      return textOfFault(act)
  }
}

function textOfPeople(act: PeopleAct): string {
  switch (act.do) {
    case 'create': {
      const of = namedIn(act.object)
      return `${whoOf(act.kind, of)} creates ${act.kind} ${nameOf(of)}${inBrackets(factsOf(act.kind, act.object))}`
    }
    case 'edit':
      return `${whoOf(act.kind, act.of)} edits ${thingOf(act.kind, act.of)} (${act.why}): ${patchText(act.patch)}`
    case 'delete': {
      const how = [
        act.graceSeconds === 0 && 'at once',
        act.graceSeconds !== undefined && act.graceSeconds > 0 && `within ${act.graceSeconds} s`,
        act.propagation === 'Foreground' && 'after what belongs to it',
        act.propagation === 'Orphan' && 'leaving what belongs to it',
      ]
      return `${whoOf(act.kind, act.of)} deletes ${thingOf(act.kind, act.of)}${inBrackets(how)}`
    }
    case 'go back':
      return `${whoOf('claim', act.of)} takes claim ${nameOf(act.of)} back to what it has`
    case 'switch gate':
      return `${ADMIN} switches ${act.gate} ${act.isOn ? 'on' : 'off'}`
    case 'import': {
      const facts = factsOf('volume', act.object)
      return `${ADMIN} imports ${act.name} of ${act.driver} as volume ${nameOf(namedIn(act.object))}${inBrackets(facts)}`
    }
  }
}

const ADMIN = 'admin'
const USERS: Readonly<Record<string, string>> = { [NAMESPACES[0]]: 'alice', [NAMESPACES[1]]: 'bob' }
const OF_USERS: readonly KindName[] = ['claim', 'pod', 'config map']

const whoOf = (kind: KindName, { namespace = '' }: Named): string =>
  OF_USERS.includes(kind) ? (USERS[namespace] ?? 'somebody') : ADMIN

const nameOf = ({ namespace, name }: Named): string => (namespace ? `${namespace}/${name}` : name)
const thingOf = (kind: KindName, of: Named): string =>
  kind === 'volume' && of.namespace ? `the volume of claim ${nameOf(of)}` : `${kind} ${nameOf(of)}`

function namedIn(object: ObjectText): Named {
  const { namespace, name } = (object.metadata ?? {}) as Partial<Named>
  return { ...(namespace ? { namespace } : {}), name: name ?? 'without a name' }
}

type Facts = readonly (string | false | undefined)[]

function inBrackets(facts: Facts): string {
  const said = facts.filter((fact) => fact)
  return said.length > 0 ? ` (${said.join(', ')})` : ''
}

/** Of what a person wrote, what a reader wants to know first. */
function factsOf(kind: KindName, object: ObjectText): Facts {
  const spec = partOf(object, 'spec')
  switch (kind) {
    case 'claim':
      return claimFacts(spec)
    case 'pod':
      return podFacts(spec)
    case 'volume':
      return [
        textIn(partOf(spec, 'capacity'), 'storage'),
        textIn(spec, 'storageClassName'),
        textIn(spec, 'persistentVolumeReclaimPolicy'),
        spec.volumeMode === 'Block' && 'Block',
        spec.claimRef !== undefined && `for ${nameOf(namedIn({ metadata: spec.claimRef }))}`,
      ]
    case 'quota':
      return [
        ...Object.entries(partOf(spec, 'hard')).map(([key, value]) => `${key} ${value}`),
        spec.scopes !== undefined && patchText(spec.scopes),
        spec.scopeSelector !== undefined && patchText(spec.scopeSelector),
      ]
    case 'limit range':
      return [patchText(spec.limits ?? [])]
    case 'storage class':
      return [textIn(object, 'provisioner'), textIn(object, 'volumeBindingMode'), textIn(object, 'reclaimPolicy')]
    case 'attributes class':
      return [textIn(object, 'driverName'), patchText(object.parameters ?? {})]
    default:
      return []
  }
}

function claimFacts(spec: ObjectText): Facts {
  const { storage, ...amounts } = partOf(partOf(spec, 'resources'), 'requests')
  const { accessModes } = spec
  return [
    String(storage ?? 'no size'),
    spec.storageClassName === '' ? 'class ""' : textIn(spec, 'storageClassName'),
    textIn(spec, 'volumeAttributesClassName'),
    ...Object.entries(amounts).map(([key, value]) => `${key} ${value}`),
    Array.isArray(accessModes) && accessModes.join() !== 'ReadWriteOnce' && accessModes.join('+'),
    spec.volumeMode === 'Block' && 'Block',
    spec.volumeName !== undefined && `volume ${spec.volumeName}`,
    spec.selector !== undefined && `selecting ${patchText(spec.selector)}`,
    spec.dataSource !== undefined && `copy of ${textIn(partOf(spec, 'dataSource'), 'name') ?? 'something'}`,
  ]
}

function podFacts(spec: ObjectText): Facts {
  const volumes = Array.isArray(spec.volumes) ? (spec.volumes as ObjectText[]) : []
  return [
    ...volumes.map((volume) => {
      const claim = textIn(partOf(volume, 'persistentVolumeClaim'), 'claimName')
      if (claim !== undefined) return claim
      const template = partOf(partOf(partOf(volume, 'ephemeral'), 'volumeClaimTemplate'), 'spec')
      return `own ${claimFacts(template)
        .filter((fact) => fact)
        .join(' ')}`
    }),
    spec.nodeName !== undefined && `on ${spec.nodeName}`,
    spec.nodeSelector !== undefined && `on nodes with ${patchText(spec.nodeSelector)}`,
    spec.schedulerName !== undefined && `placed by ${spec.schedulerName}`,
  ]
}

function partOf(object: ObjectText, key: string): ObjectText {
  const part = object[key]
  return typeof part === 'object' && part !== null ? (part as ObjectText) : {}
}

function textIn(object: ObjectText, key: string): string | undefined {
  const value = object[key]
  return value === undefined || value === '' ? undefined : String(value)
}

/** `spec.resources.requests.storage=4Gi`, or as it is where it is more than one thing. */
function patchText(patch: unknown): string {
  const path: string[] = []
  let inner = patch
  while (typeof inner === 'object' && inner !== null && !Array.isArray(inner)) {
    const [only, ...others] = Object.entries(inner)
    if (!only || others.length > 0) break
    path.push(only[0])
    inner = only[1]
  }
  const value = typeof inner === 'string' ? inner : (JSON.stringify(inner) ?? 'nothing')
  return path.length > 0 ? `${path.join('.')}=${value}` : value
}

function textOfFault(act: FaultAct): string {
  switch (act.do) {
    case 'crash':
      return `${act.process} crashes for ${duration(act.downMs)}`
    case 'freeze':
      return `${act.process} freezes for ${duration(act.ms)}`
    case 'jump clock':
      return `the clock of ${act.process} jumps ${act.byMs < 0 ? 'back' : 'ahead'} by ${duration(Math.abs(act.byMs))}`
    case 'cut power':
      return `${act.node} has no power for ${duration(act.downMs)}${act.isSaidLost ? ', and is said to be lost' : ''}`
    case 'break watches':
      return 'all watches break'
    case 'cut history':
      return `the watches${act.plural ? ` of ${act.plural}` : ''}${act.process ? ` of ${act.process}` : ''} are silent for ${duration(act.ms)}, then their history is cut`
    case 'refuse writes':
      return `the disk refuses writes for ${duration(act.ms)}`
    case 'bad network': {
      const whose = act.process ? ` of ${act.process}` : ''
      const what = act.only === 'replies' ? ' of the replies to writes' : ''
      return `the network${whose} loses ${Math.round(act.lose * 100)} %${what} for ${duration(act.ms)}`
    }
    case 'driver fails':
      return `${act.driver} answers ${act.method} with ${act.code}${act.times > 1 ? `, ${act.times} times` : ''}`
    case 'driver hangs':
      return `${act.driver} hangs in ${act.method} for ${duration(act.ms)}`
    case 'lose replies':
      return `replies of ${act.driver} are lost for ${duration(act.ms)}`
    case 'fill pool':
      return `the pool of ${act.driver} is full for ${duration(act.ms)}`
    case 'lose state':
      return `${act.driver} loses everything it holds`
    case 'report late':
      return `${act.driver} reports old capacity for ${duration(act.ms)}`
  }
}

/** `40 s`, `1.5 s`, `2.5 min`. */
function duration(ms: number): string {
  const [amount, unit] = ms < 1_000 ? [ms, 'ms'] : ms < 120_000 ? [ms / 1_000, 's'] : [ms / 60_000, 'min']
  return `${Number(amount.toFixed(1))} ${unit}`
}
