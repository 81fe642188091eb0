// What holds for every returned object: no nulls, times and quantities in canonical form.
import { isRecord, type Say, show } from './findings.ts'
import { canonical, readQuantity, staysAsWritten } from './quantity.ts'
import { isMicroTime, isTime } from './times.ts'

const TIMES = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'lastTransitionTime',
  'lastProbeTime',
  'lastHeartbeatTime',
  'lastPhaseTransitionTime',
  'timeAdded',
  'startTime',
  'startedAt',
  'finishedAt',
  'firstTimestamp',
  'lastTimestamp',
  'deprecatedFirstTimestamp',
  'deprecatedLastTimestamp',
])
const MICRO_TIMES = new Set(['acquireTime', 'renewTime', 'eventTime', 'lastObservedTime'])
const QUANTITIES = new Set(['maximumVolumeSize', 'sizeLimit', 'divisor'])
const QUANTITY_MAPS = new Set([
  'requests',
  'limits',
  'capacity',
  'allocatable',
  'allocatedResources',
  'overhead',
  'hard',
  'used',
  'min',
  'max',
  'default',
  'defaultRequest',
  'maxLimitRequestRatio',
])
/** Maps with user-defined keys, so that a key does not determine the type of its value. */
const FREE_MAPS = new Set([
  'labels',
  'annotations',
  'parameters',
  'data',
  'binaryData',
  'matchLabels',
  'nodeSelector',
  'options',
  'volumeAttributes',
  'attachmentMetadata',
  'fieldsV1',
])

export function checkWire(value: unknown, path: string, say: Say): void {
  if (value === null) say(path, 'null is never stored')
  if (typeof value === 'number' && !Number.isFinite(value)) say(path, 'not a finite number')
  if (Array.isArray(value)) for (const [i, item] of value.entries()) checkWire(item, `${path}[${i}]`, say)
  if (!isRecord(value)) return
  for (const [key, inner] of Object.entries(value)) {
    const at = `${path}.${key}`
    if (TIMES.has(key) && !isTime(inner)) say(at, `${show(inner)} is no time in whole seconds UTC`)
    else if (MICRO_TIMES.has(key) && !isMicroTime(inner)) say(at, `${show(inner)} is no time in microseconds UTC`)
    else if (QUANTITIES.has(key)) checkQuantity(inner, at, say)
    else if (QUANTITY_MAPS.has(key) && isRecord(inner)) {
      for (const [name, amount] of Object.entries(inner)) {
        if (typeof amount !== 'number') checkQuantity(amount, `${at}[${name}]`, say) // a CSINode's allocatable is a count
      }
    } else if (key === 'capacity' && typeof inner === 'string') checkQuantity(inner, at, say)
    if (FREE_MAPS.has(key)) {
      for (const [name, item] of Object.entries(inner ?? {}))
        if (item === null) say(`${at}[${name}]`, 'null is never stored')
    } else checkWire(inner, at, say)
  }
}

function checkQuantity(text: unknown, path: string, say: Say): void {
  const amount = readQuantity(text)
  if (!amount) say(path, `${show(text)} is no quantity`)
  else if (canonical(amount) !== text && !staysAsWritten(String(text)))
    say(path, `${show(text)} should be written ${canonical(amount)}`)
}
