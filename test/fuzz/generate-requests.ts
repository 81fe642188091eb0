// Generates valid, nearly valid and hostile requests. Many of them concern existing objects, so that several writes change
// the same object. All randomness comes from `dice`, so that a seed replays a run.
import type { Dice } from './dice.ts'
import {
  copyOf,
  damage,
  HOSTILE_NUMBERS,
  HOSTILE_STRINGS,
  hostileValue,
  locationsIn,
  mutate,
  YAML_BODIES,
} from './mutate-input.ts'
import { collectionPath, metadataOf, SERVED, type ServedKind } from './samples.ts'

export interface FuzzRequest {
  /** Intent of the generator. Results are counted by intent. */
  readonly intent: string
  readonly method: string
  /** Path without the query. */
  readonly path: string
  readonly query: string
  /** Values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Whether the request is valid, so that the server may reject it only because of its state. */
  readonly isValid?: boolean
}

/** An object of the server, as last returned. */
export interface KnownObject {
  readonly served: ServedKind
  readonly apiVersion: string
  readonly namespace: string
  readonly name: string
  readonly object: any
}

/** The state of the server that the generator uses. */
export interface ServerState {
  readonly objects: readonly KnownObject[]
  readonly revision: number
}

export const NAMESPACES = ['default', 'shop', 'lab', 'kube-system'] as const
const NAMES: Record<string, readonly string[]> = {
  StorageClass: ['gold', 'silver', 'fast.example.com', 's3'],
  VolumeAttributesClass: ['gold', 'silver', 'v2'],
  Namespace: ['shop', 'lab', 'n0', 'n1', 'n2'],
  CSIDriver: ['csi.example.com', 'hostpath', 'd2'],
  StatefulSet: ['c0', 'c1', 'web', 'db'], // DNS labels
}
const OTHER_NAMES = ['c0', 'c1', 'c2', 'c3', 'pv0', 'pv1', 'n1', 'a.b']

const JSON_HEADERS = { 'content-type': 'application/json' }
const JSON_PATCH = 'application/json-patch+json'
const MERGE_PATCH = 'application/merge-patch+json'
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json'
/** Types of patches that are objects, instead of lists of operations. */
const OBJECT_PATCH_TYPES = [MERGE_PATCH, STRATEGIC_MERGE_PATCH] as const
const PATCH_TYPES = [JSON_PATCH, ...OBJECT_PATCH_TYPES] as const
const CONTENT_TYPES = [
  'text/plain',
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/vnd.kubernetes.protobuf',
  'application/cbor',
  'application/apply-patch+yaml',
  'multipart/form-data; boundary=x',
  ';',
  'application/json;'.repeat(100),
  ...PATCH_TYPES,
]
const ACCEPTS = [
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/yaml',
  'application/vnd.kubernetes.protobuf, */*',
  'text/html',
  ',;=,,',
  '*/*;q=0',
]

export function createGenerator(dice: Dice): (state: ServerState) => FuzzRequest {
  const table: readonly (readonly [weight: number, (state: ServerState) => FuzzRequest])[] = [
    [16, (state) => createValid(dice, state)],
    [16, () => createMutated(dice)],
    [5, () => sendDamagedBody(dice)],
    [1, () => createYaml(dice)],
    [6, () => requestHostilePath(dice)],
    [9, (state) => readWithOddQuery(dice, state)],
    [5, (state) => patchValid(dice, state)],
    [13, (state) => patchWithOddBody(dice, state)],
    [12, (state) => put(dice, state)],
    [7, (state) => writeStatus(dice, state)],
    [4, (state) => remove(dice, state)],
    [3, (state) => removeFinalizers(dice, state)],
    [1, (state) => callSubresource(dice, state)],
    [2, () => postReview(dice)],
  ]
  const weightedGenerators = table.flatMap(([weight, generate]) => Array.from({ length: weight }, () => generate))
  return (state) => replaceHeaders(dice, dice.pick(weightedGenerators)(state))
}

function replaceHeaders(dice: Dice, request: FuzzRequest): FuzzRequest {
  if (request.isValid || !dice.oneIn(25)) return request
  const oddHeaders = dice.pick<Record<string, string>>([
    { 'content-type': dice.pick(CONTENT_TYPES) },
    { accept: dice.pick(ACCEPTS) },
    { 'user-agent': dice.pick(HOSTILE_STRINGS) },
    { 'impersonate-user': dice.pick(HOSTILE_STRINGS) },
    { 'impersonate-group': 'system:masters' },
    { 'content-encoding': 'gzip' },
  ])
  return { ...request, headers: { ...request.headers, ...oddHeaders } }
}

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value) ?? 'null')
const nameFor = (dice: Dice, { kind }: ServedKind) => dice.pick(NAMES[kind] ?? OTHER_NAMES)

function sampleObject(dice: Dice, served = dice.pick(SERVED)) {
  const apiVersion = dice.pick(served.apiVersions)
  const namespace = dice.pick(NAMESPACES)
  const { metadata, ...objectFields } = served.sample(dice, namespace)
  const name = nameFor(dice, served)
  const object = copyOf({ apiVersion, kind: served.kind, metadata: { name, ...metadata }, ...objectFields })
  return { served, apiVersion, namespace, name, object, path: collectionPath(apiVersion, served, namespace) }
}

const pickWriteQuery = (dice: Dice): string =>
  dice.pick([
    '',
    '',
    '',
    'fieldManager=fuzz',
    'fieldValidation=Strict',
    'fieldValidation=Ignore',
    'fieldValidation=Warn&fieldManager=fuzz',
    'dryRun=All',
    'dryRun=None',
    'fieldValidation=strict',
    `fieldManager=${'m'.repeat(129)}`,
    'fieldManager=%00',
    'pretty=true&unknown=1',
  ])

function createValid(dice: Dice, { objects }: ServerState): FuzzRequest {
  const { path, object } = sampleObject(dice)
  if (dice.oneIn(6)) {
    object.metadata.generateName = dice.pick(['x-', 'gen-', 'a'])
    delete object.metadata.name
    if (objects.length > 150) object.metadata.name = 'c0' // bounds the number of objects
  }
  const query = dice.pick(['', '', 'fieldValidation=Strict', 'dryRun=All', 'fieldManager=fuzz'])
  return { intent: 'create', method: 'POST', path, query, headers: JSON_HEADERS, body: json(object), isValid: true }
}

export function createMutated(dice: Dice, served = dice.pick(SERVED)): FuzzRequest {
  const { path, object } = sampleObject(dice, served)
  const body = mutate(dice, object, 1 + dice.int(3))
  return {
    intent: 'create mutated',
    method: 'POST',
    path,
    query: pickWriteQuery(dice),
    headers: JSON_HEADERS,
    body: json(body),
  }
}

function sendDamagedBody(dice: Dice): FuzzRequest {
  const { path, name, object } = sampleObject(dice)
  const method = dice.pick(['POST', 'PUT', 'PATCH', 'DELETE'])
  const type = method === 'PATCH' ? dice.pick(PATCH_TYPES) : 'application/json'
  return {
    intent: 'damaged body',
    method,
    path: method === 'POST' ? path : `${path}/${name}`,
    query: '',
    headers: { 'content-type': dice.oneIn(8) ? dice.pick(CONTENT_TYPES) : type },
    body: damage(dice, JSON.stringify(object)),
  }
}

function createYaml(dice: Dice): FuzzRequest {
  const { path, object } = sampleObject(dice)
  const text = dice.oneIn(2) ? dice.pick(YAML_BODIES) : JSON.stringify(dice.oneIn(2) ? object : mutate(dice, object)) // JSON is valid YAML
  const query = dice.pick(['', 'fieldValidation=Strict'])
  return {
    intent: 'yaml',
    method: 'POST',
    path,
    query,
    headers: { 'content-type': 'application/yaml' },
    body: Buffer.from(text),
  }
}

const ODD_PATHS = [
  '/',
  '',
  '//',
  '/api',
  '/apis/',
  '/api/v1',
  '/api/v2/pods',
  '/api/v1//pods',
  '/api/v1/namespaces//pods',
  '/api/v1/namespaces/default',
  '/api/v1/namespaces/default/pods/x/binding',
  '/api/v1/namespaces/default/pods/x/exec',
  '/api/v1/namespaces/default/pods/x/status/more',
  '/api/v1/namespaces/shop/persistentvolumes',
  '/api/v1/persistentvolumeclaims',
  '/api/v1/persistentvolumeclaims/c0',
  '/api/v1/watch/pods',
  '/apis/storage.k8s.io/v1/namespaces/x/storageclasses/gold',
  '/apis/storage.k8s.io/v9/storageclasses',
  '/apis/unknown.example.com/v1/things',
  '/apis/__proto__/constructor/prototype',
  '/api/v1/constructor',
  '/api/v1/__proto__/x',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/api/v1',
  '/openapi/v3/__proto__',
  '/version',
  '/healthz/../readyz',
  '/livez/ping',
  '/metrics',
  '/%',
  '/%zz',
  '/api/v1/nodes/%zz',
  '/api/v1/nodes/%00',
  '/api/v1/nodes/%2e%2e',
  '/api/v1/nodes/a%2fb',
  '/api/v1/nodes/%c0%af',
  '/api/v1/nodes/ÿ',
  '*',
  'http://elsewhere/api/v1/nodes',
]
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'get', 'BREW', '']

function requestHostilePath(dice: Dice): FuzzRequest {
  const { path, object } = sampleObject(dice)
  const encode = dice.pick([encodeSafely, String])
  const hostilePath = dice.pick([
    () => dice.pick(ODD_PATHS),
    () => `${path}/${encode(dice.pick(HOSTILE_STRINGS))}`,
    () => `${path}/c0/${encode(dice.pick(HOSTILE_STRINGS))}`,
    () => `/api/v1/namespaces/${encode(dice.pick(HOSTILE_STRINGS))}/persistentvolumeclaims`,
    () => `/apis/${encode(dice.pick(HOSTILE_STRINGS))}/v1/storageclasses`,
    () => `${path}${'/x'.repeat(dice.int(2_000))}`,
  ])()
  const method = dice.pick(METHODS)
  return {
    intent: 'odd path',
    method,
    path: hostilePath,
    query: dice.oneIn(3) ? buildOddQuery(dice, 1) : '',
    headers: method === 'PATCH' ? { 'content-type': MERGE_PATCH } : JSON_HEADERS,
    body: method === 'PATCH' ? json({ metadata: { labels: { a: 'b' } } }) : json(object),
  }
}

/** Encodes text for a URL. Replaces lone surrogates, which cannot be encoded. */
const encodeSafely = (text: string): string => encodeURIComponent(text.replace(/[\ud800-\udfff]/g, '?'))

const LABEL_SELECTORS = [
  'app',
  '!app',
  'app=x',
  'app==x,tier!=y',
  'app in (a,b)',
  'app notin ()',
  'a>1,b<2',
  'a>x',
  'app in (',
  '==',
  ',',
  '(((((',
  '!',
  '!!a',
  'a=b=c',
  'a in (b) c',
  `${'a,'.repeat(3_000)}a`,
  `x in (${'v,'.repeat(3_000)}v)`,
  '__proto__=x',
  'constructor',
  'a/b/c=d',
  'ключ=значение',
]
const FIELD_SELECTORS = [
  'metadata.name=c0',
  'metadata.name!=c0,metadata.namespace=shop',
  'metadata.namespace=',
  'spec.nodeName=',
  'status.phase=Pending',
  'type=Opaque',
  'involvedObject.name=c0',
  'metadata.uid=x',
  '__proto__=x',
  'constructor=x',
  'metadata.name',
  '=',
  'a\\',
  'metadata.name=a\\,b\\=c\\\\',
  'metadata.name=a\\q',
  `${'metadata.name!=x,'.repeat(2_000)}metadata.name!=y`,
]
const VERSIONS = [
  '0',
  '1',
  '-1',
  '00',
  '1.5',
  'abc',
  '٣',
  ' 1',
  '1e3',
  '9223372036854775807',
  '18446744073709551616',
  '99999999999',
  '0x1',
]

function buildOddQuery(dice: Dice, revision: number): string {
  const version = () => dice.pick([String(revision), String(Math.max(1, revision - dice.int(50))), dice.pick(VERSIONS)])
  const parameters: (() => [string, string])[] = [
    () => ['labelSelector', dice.pick([...LABEL_SELECTORS, ...HOSTILE_STRINGS])],
    () => ['fieldSelector', dice.pick([...FIELD_SELECTORS, ...HOSTILE_STRINGS])],
    () => ['resourceVersion', version()],
    () => ['resourceVersionMatch', dice.pick(['Exact', 'NotOlderThan', 'exact', ''])],
    () => ['limit', dice.pick(['1', '2', '500', '0', '-1', 'x', '1e9', '99999999999999999999', ''])],
    () => ['continue', dice.pick([buildContinueToken(dice, revision), ...HOSTILE_STRINGS])],
    () => ['watch', dice.pick(['1', 'true', '0', 'false', '', 'yes'])],
    () => ['allowWatchBookmarks', dice.pick(['true', 'maybe'])],
    () => ['sendInitialEvents', dice.pick(['true', 'false', ''])],
    () => ['timeoutSeconds', dice.pick(['0', '1', '-5', 'x', '99999999999'])],
    () => ['includeObject', dice.pick(['None', 'Object', 'Everything'])],
    () => ['gracePeriodSeconds', dice.pick(['0', '-1', 'x', '1e5'])],
    () => ['propagationPolicy', dice.pick(['Orphan', 'Background', 'Never'])],
    () => ['verbose', ''],
    () => ['exclude', dice.pick(HOSTILE_STRINGS)],
    () => ['hash', dice.pick(HOSTILE_STRINGS)],
    () => ['__proto__', 'x'],
  ]
  const parameterPairs = Array.from({ length: 1 + dice.int(4) }, () => dice.pick(parameters)())
  return new URLSearchParams(parameterPairs).toString()
}

function buildContinueToken(dice: Dice, revision: number): string {
  const start = dice.pick(['c0', 'shop/c0', '', '../', '\uffff', 'x'.repeat(500)])
  const content = dice.pick<unknown>([
    { v: 1, rv: revision, start },
    { v: 1, rv: -1, start },
    { v: 1, rv: dice.pick(HOSTILE_NUMBERS), start },
    { v: 2, rv: revision, start },
    { v: 1, rv: revision, start: 7 },
    null,
    [],
    'text',
  ])
  return Buffer.from(JSON.stringify(content)).toString('base64url')
}

function readWithOddQuery(dice: Dice, { objects, revision }: ServerState): FuzzRequest {
  const { path, served } = sampleObject(dice)
  const allNamespacesPath = path.replace(/\/namespaces\/[^/]+/, '')
  const existingPath = objects.length > 0 ? pathOf(dice.pick(objects)) : path
  const requestPath = dice.pick([
    path,
    path,
    allNamespacesPath,
    existingPath,
    `${existingPath}/status`,
    `${path}/missing`,
  ])
  return {
    intent: 'read',
    method: dice.pick(['GET', 'GET', 'GET', 'HEAD']),
    path: requestPath,
    query: dice.oneIn(5) ? (dice.oneIn(2) ? 'watch=1' : '') : buildOddQuery(dice, revision),
    headers: served && dice.oneIn(4) ? { accept: dice.pick(ACCEPTS) } : {},
  }
}

const pathOf = ({ apiVersion, served, namespace, name }: KnownObject): string =>
  `${collectionPath(apiVersion, served, namespace)}/${encodeSafely(name)}`

/** Returns an existing object or, rarely, a new sample. */
function pickTarget(dice: Dice, { objects }: ServerState): KnownObject {
  if (objects.length > 0 && !dice.oneIn(20)) return dice.pick(objects)
  return sampleObject(dice)
}

function patchValid(dice: Dice, state: ServerState): FuzzRequest {
  const target = pickTarget(dice, state)
  const merge = dice.pick<any>([
    { metadata: { labels: { 'example.com/touched': String(dice.int(5)) } } },
    { metadata: { annotations: { note: null } } },
    { metadata: { labels: null } },
    { metadata: { annotations: { 'example.com/n': 'x' }, resourceVersion: target.object.metadata.resourceVersion } },
    ...(target.served.kind === 'PersistentVolumeClaim'
      ? [
          { spec: { resources: { requests: { storage: dice.pick(['1Gi', '20Gi', '2Ti', '1']) } } } },
          { spec: { resources: { requests: { iops: dice.pick(['100', '2000', null]) } } } },
          { spec: { volumeAttributesClassName: dice.pick(['gold', 'silver', null, '']) } },
          { spec: { volumeName: 'pv0' } },
          { spec: { storageClassName: 'gold' } },
        ]
      : []),
    ...(target.served.kind === 'StorageClass' ? [{ allowVolumeExpansion: true }] : []),
    ...(target.served.kind === 'StatefulSet'
      ? [
          { spec: { replicas: dice.pick([0, 5, -1, null]) } },
          { spec: { updateStrategy: dice.pick([{ type: 'OnDelete', rollingUpdate: null }, { rollingUpdate: {} }]) } },
          { spec: { template: { spec: { terminationGracePeriodSeconds: dice.int(60) } } } },
          { spec: { template: { metadata: { labels: { app: dice.pick(['db', 'web', 'other', null]) } } } } },
          { spec: { serviceName: 'other' } },
          { spec: { podManagementPolicy: dice.pick(['OrderedReady', 'Parallel', null]) } },
          { spec: { selector: { matchLabels: { app: dice.pick(['db', 'web']) } } } },
          { spec: { volumeClaimTemplates: null } },
        ]
      : []),
    ...(target.served.kind === 'ControllerRevision'
      ? [{ revision: dice.pick([3, -1, null]) }, { data: dice.pick([{ spec: 1 }, null, {}]) }]
      : []),
  ])
  return {
    intent: 'patch',
    method: 'PATCH',
    path: pathOf(target),
    query: dice.pick(['', 'fieldManager=fuzz', 'dryRun=All']),
    headers: { 'content-type': dice.pick(OBJECT_PATCH_TYPES) },
    body: json(merge),
  }
}

function patchWithOddBody(dice: Dice, state: ServerState): FuzzRequest {
  const target = pickTarget(dice, state)
  const type = dice.pick(PATCH_TYPES)
  const body = type === JSON_PATCH ? buildJsonPatch(dice, target.object) : buildMergePatch(dice, target, type)
  return {
    intent: 'odd patch',
    method: 'PATCH',
    path: dice.oneIn(6) ? `${pathOf(target)}/status` : pathOf(target),
    query: dice.oneIn(3) ? pickWriteQuery(dice) : '',
    headers: { 'content-type': type },
    body: dice.oneIn(20) ? damage(dice, JSON.stringify(body)) : json(body),
  }
}

function buildJsonPatch(dice: Dice, object: any): unknown {
  const pointers = pointersIn(object)
  const pointer = () =>
    dice.oneIn(4)
      ? dice.pick([
          '',
          '/',
          '/metadata/labels/a~1b',
          '/spec/-',
          '/metadata/finalizers/-',
          '/a/b/c',
          '/~',
          '/~2',
          '/__proto__/x',
          '/constructor/prototype/x',
          '/spec/containers/01',
          '/spec/containers/-1',
          '/metadata/name',
          'metadata',
          '/kind',
        ])
      : dice.pick(pointers)
  const operation = () => {
    const op = dice.pick(['add', 'replace', 'remove', 'test', 'move', 'copy', 'merge', undefined, 7])
    return {
      op,
      path: dice.oneIn(30) ? hostileValue(dice) : pointer(),
      ...(dice.oneIn(8)
        ? {}
        : { value: dice.oneIn(2) ? hostileValue(dice) : dice.pick(['x', 'example.com/f', '5Gi', {}, []]) }),
      ...(op === 'move' || op === 'copy' ? { from: pointer() } : {}),
    }
  }
  if (dice.oneIn(40))
    return Array.from({ length: dice.pick([1_000, 10_001]) }, () => ({ op: 'copy', from: '/metadata', path: '/spec' }))
  if (dice.oneIn(40)) return Array.from({ length: 40 }, () => ({ op: 'copy', from: '', path: '/metadata/annotations' }))
  if (dice.oneIn(30)) return hostileValue(dice)
  return Array.from({ length: 1 + dice.int(3) }, operation)
}

function pointersIn(object: any): string[] {
  const pointers: string[] = ['/metadata']
  const walk = (value: any, parentPointer: string, depth: number) => {
    if (typeof value !== 'object' || value === null || depth > 6) return
    for (const key of Object.keys(value)) {
      const pointer = `${parentPointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
      pointers.push(pointer)
      walk(value[key], pointer, depth + 1)
    }
  }
  walk(object, '', 0)
  return pointers
}

const DIRECTIVES: readonly any[] = [
  { metadata: { $patch: 'delete' } },
  { spec: { $patch: 'replace' } },
  { $patch: 'replace' },
  { $patch: 'explode' },
  { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/hold'] } },
  { metadata: { '$setElementOrder/finalizers': ['b', 'a'], finalizers: ['example.com/a', 'example.com/b'] } },
  { metadata: { '$deleteFromPrimitiveList/finalizers': 'no list' } },
  { metadata: { '$setElementOrder/unknown': [] } },
  { metadata: { ownerReferences: [{ $patch: 'delete', uid: 'u-1' }] } },
  { metadata: { ownerReferences: [{ name: 'without its key' }] } },
  { metadata: { ownerReferences: [{ $patch: 'replace' }] } },
  { spec: { containers: [{ name: 'main', image: 'other:2' }] } },
  { spec: { containers: [{ $patch: 'delete', name: 'main' }] } },
  { spec: { $retainKeys: ['nothing'], volumes: [{ name: 'data', $retainKeys: ['name', 'emptyDir'], emptyDir: {} }] } },
  { spec: { drivers: [{ name: 'hostpath', nodeID: 'other', topologyKeys: null }] } },
  {
    status: {
      conditions: [
        { type: 'Ready', $patch: 'delete' },
        { type: 'X', status: 'True' },
      ],
    },
  },
  { metadata: { labels: { $patch: 'replace', only: 'this' } } },
  { $retainKeys: 'x' },
]

function buildMergePatch(dice: Dice, { object, served }: KnownObject, type: string): unknown {
  if (type === STRATEGIC_MERGE_PATCH && dice.oneIn(2)) return dice.pick(DIRECTIVES)
  if (dice.oneIn(12)) return hostileValue(dice)
  if (dice.oneIn(5)) return mutate(dice, object) // the whole object with one change
  if (dice.oneIn(8)) return { metadata: metadataOf(dice), status: served.sampleStatus?.(dice) ?? null }
  if (locationsIn(object).length === 0) return { metadata: { labels: { x: 'y' } } }
  const keys = dice.pick(pointersIn(object)).slice(1).split('/')
  return keys.reduceRight<unknown>(
    (value, key) => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value) ?? 'null'}}`),
    hostileValue(dice),
  )
}

function put(dice: Dice, state: ServerState): FuzzRequest {
  const target = pickTarget(dice, state)
  const copy = copyOf(target.object)
  const { metadata } = copy
  const change = dice.pick<() => any>([
    () => copy, // no change
    () => ({ ...copy, metadata: { ...metadata, labels: { v: String(dice.int(9)) } } }),
    () => ({
      ...copy,
      metadata: {
        ...metadata,
        resourceVersion: dice.pick(['1', '0', '', 'abc', '99999999999', String(state.revision)]),
      },
    }),
    () => ({
      ...copy,
      metadata: { ...metadata, uid: dice.pick(['other', '', '00000000-0000-0000-0000-000000000000']) },
    }),
    () => ({ ...copy, metadata: { ...metadata, name: dice.pick(['another', '', undefined]) } }),
    () => ({ ...copy, metadata: { ...metadata, namespace: dice.pick(['elsewhere', '', 'default']) } }),
    () => ({ ...copy, metadata: { ...metadata, resourceVersion: undefined } }),
    () => ({
      ...copy,
      metadata: {
        ...metadata,
        creationTimestamp: null,
        deletionTimestamp: '2030-01-01T00:00:00Z',
        generation: 99,
        selfLink: 'x',
      },
    }),
    () => ({ ...copy, status: target.served.sampleStatus?.(dice) ?? {} }),
    () => ({ ...copy, metadata: { ...metadata, finalizers: ['example.com/new'] } }),
    () => ({ ...copy, ...target.served.sample(dice, target.namespace), metadata }), // another spec under the same name
    () => mutate(dice, copy),
    () => mutate(dice, copy, 3),
    () => ({
      ...copy,
      kind: dice.pick(['Pod', '', undefined, 7]),
      apiVersion: dice.pick([target.apiVersion, 'v2', null]),
    }),
  ])
  return {
    intent: 'put',
    method: 'PUT',
    path: pathOf(target),
    query: dice.oneIn(3) ? pickWriteQuery(dice) : '',
    headers: JSON_HEADERS,
    body: json(change()),
  }
}

function writeStatus(dice: Dice, state: ServerState): FuzzRequest {
  const objectsWithStatus = state.objects.filter(({ served }) => served.hasStatus)
  const target = objectsWithStatus.length > 0 ? dice.pick(objectsWithStatus) : pickTarget(dice, state)
  const status = target.served.sampleStatus?.(dice) ?? {}
  const newStatus = dice.oneIn(3) ? mutate(dice, status) : status
  const path = `${pathOf(target)}/status`
  if (dice.oneIn(2)) {
    const body = json({ ...copyOf(target.object), status: newStatus })
    return { intent: 'status', method: 'PUT', path, query: '', headers: JSON_HEADERS, body }
  }
  const headers = { 'content-type': dice.pick(OBJECT_PATCH_TYPES) }
  return { intent: 'status', method: 'PATCH', path, query: '', headers, body: json({ status: newStatus }) }
}

function remove(dice: Dice, state: ServerState): FuzzRequest {
  const target = pickTarget(dice, state)
  const { uid, resourceVersion } = target.object.metadata
  const options = dice.pick<any>([
    undefined,
    {},
    { propagationPolicy: dice.pick(['Foreground', 'Orphan', 'Background', 'Sideways', 7]) },
    { preconditions: { uid: dice.pick([uid, 'other', '', 7]) } },
    { preconditions: { resourceVersion: dice.pick([resourceVersion, '1', 'abc']) } },
    { gracePeriodSeconds: dice.pick([0, -1, 30, 1.5, '5', 2 ** 40]) },
    { dryRun: dice.pick<unknown>([['All'], ['None'], 'All', []]) },
    { orphanDependents: true, propagationPolicy: 'Orphan' },
    { kind: 'DeleteOptions', apiVersion: 'v1', unknown: 1 },
    { kind: 'Pod' },
    hostileValue(dice),
  ])
  const isCollection = dice.oneIn(40)
  const collection = pathOf(target).replace(/\/[^/]*$/, '')
  return {
    intent: isCollection ? 'delete all' : 'delete',
    method: 'DELETE',
    path: isCollection ? collection : pathOf(target),
    query: isCollection
      ? dice.pick(['labelSelector=v%3D1', 'fieldSelector=metadata.name%3Dc0', 'limit=1', 'dryRun=All'])
      : '',
    headers: JSON_HEADERS,
    ...(options === undefined ? {} : { body: json(options) }),
  }
}

/** Removes the finalizers of a terminating object, so that its name becomes free. */
function removeFinalizers(dice: Dice, state: ServerState): FuzzRequest {
  const terminatingObjects = state.objects.filter(({ object }) => object.metadata.deletionTimestamp)
  if (terminatingObjects.length === 0) return remove(dice, state)
  const target = dice.pick(terminatingObjects)
  if (target.served.kind === 'Namespace' && dice.oneIn(2)) {
    const body = json({
      ...target.object,
      spec: dice.pick<any>([{}, { finalizers: [] }, { finalizers: ['x'] }, { finalizers: ['a.b/c'] }]),
    })
    return {
      intent: 'finalize',
      method: 'PUT',
      path: `${pathOf(target)}/finalize`,
      query: '',
      headers: JSON_HEADERS,
      body,
    }
  }
  const body = json({ metadata: { finalizers: null } })
  const headers = { 'content-type': MERGE_PATCH }
  return { intent: 'release', method: 'PATCH', path: pathOf(target), query: '', headers, body }
}

function callSubresource(dice: Dice, state: ServerState): FuzzRequest {
  const sets = state.objects.filter(({ served }) => served.kind === 'StatefulSet')
  if (sets.length > 0 && dice.oneIn(3)) return scaleSet(dice, dice.pick(sets))
  const pods = state.objects.filter(({ served }) => served.kind === 'Pod')
  if (pods.length === 0) return pickTarget(dice, state) && readWithOddQuery(dice, state)
  const pod = dice.pick(pods)
  const subresourceName = dice.pick(['binding', 'eviction', 'log', 'ephemeralcontainers'])
  const body = dice.pick<any>([
    { apiVersion: 'v1', kind: 'Binding', metadata: { name: pod.name }, target: { kind: 'Node', name: 'n1' } },
    { target: { name: dice.pick(HOSTILE_STRINGS) }, metadata: { annotations: { [dice.pick(HOSTILE_STRINGS)]: 'x' } } },
    { metadata: { name: 'other' }, target: { name: 'n1', kind: 'Pod' } },
    { metadata: { name: pod.name, uid: 'other' }, target: { name: 'n1' } },
    {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod.name },
      deleteOptions: dice.pick<any>([{}, { gracePeriodSeconds: 0 }, 7]),
    },
    hostileValue(dice),
  ])
  return {
    intent: subresourceName,
    method: 'POST',
    path: `${pathOf(pod)}/${subresourceName}`,
    query: '',
    headers: JSON_HEADERS,
    body: json(body),
  }
}

function scaleSet(dice: Dice, set: KnownObject): FuzzRequest {
  const method = dice.pick(['PUT', 'PUT', 'PATCH', 'GET'])
  const scale = {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: {
      name: set.name,
      namespace: set.namespace,
      ...dice.maybe({ resourceVersion: dice.pick([set.object.metadata.resourceVersion, '1']) }),
    },
    spec: dice.pick<object>([{}, { replicas: dice.int(6) }, { replicas: dice.pick(HOSTILE_NUMBERS) }]),
    status: { replicas: 9 }, // ignored
  }
  const body = method === 'PATCH' ? { spec: scale.spec } : scale
  return {
    intent: 'scale',
    method,
    path: `${pathOf(set)}/scale`,
    query: dice.oneIn(3) ? pickWriteQuery(dice) : '',
    headers: { 'content-type': method === 'PATCH' ? MERGE_PATCH : 'application/json' },
    ...(method === 'GET' ? {} : { body: json(dice.oneIn(3) ? mutate(dice, body) : body) }),
  }
}

/** Paths of review kinds, which are never stored. */
export const REVIEW_PATHS = [
  '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  '/apis/authorization.k8s.io/v1/subjectaccessreviews',
  '/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews',
  '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
  '/apis/authentication.k8s.io/v1/tokenreviews',
  '/apis/authentication.k8s.io/v1/selfsubjectreviews',
] as const
/** Paths of foreign kinds. Their lists are empty, and the server rejects writes. */
const FOREIGN_PATHS = [
  '/api/v1/namespaces/shop/services',
  '/apis/apps/v1/namespaces/shop/replicasets',
  '/apis/resource.k8s.io/v1/deviceclasses',
  '/apis/resource.k8s.io/v1/devicetaintrules',
]

function postReview(dice: Dice): FuzzRequest {
  const isForeign = dice.oneIn(5)
  const reviewBody = dice.pick<any>([
    { spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'shop' } } },
    { spec: { user: 'u', groups: ['g'], nonResourceAttributes: { verb: 'get', path: '/healthz' } } },
    {
      spec: {
        user: 'u',
        resourceAttributes: { verb: '*', resource: dice.pick(HOSTILE_STRINGS) },
        nonResourceAttributes: {},
      },
    },
    { spec: { namespace: dice.pick(HOSTILE_STRINGS) } },
    { spec: { token: dice.pick(HOSTILE_STRINGS), audiences: ['a'] } },
    { metadata: { namespace: 'other' }, spec: { user: 'u' } },
    {},
    hostileValue(dice),
  ])
  return {
    intent: isForeign ? 'foreign kind' : 'review',
    method: dice.oneIn(5) ? dice.pick(METHODS) : 'POST',
    path: isForeign ? dice.pick(FOREIGN_PATHS) : dice.pick(REVIEW_PATHS),
    query: dice.pick(['', '', 'dryRun=All', 'fieldValidation=Strict']),
    headers: JSON_HEADERS,
    body: json(dice.oneIn(2) ? reviewBody : mutate(dice, reviewBody)),
  }
}
