// Checks the JSON of a returned object: no nulls, and times and quantities in the format of the API.
import { format, isRecord, type Report } from './findings.ts'
import { formatQuantity, keepsFormat, parseQuantity } from './quantity.ts'
import { isMicroTime, isTime } from './times.ts'

const TIMES = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'lastTransitionTime',
  'lastProbeTime',
  'lastHeartbeatTime',
  'lastPhaseTransitionTime',
  'lastUpdateTime',
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
/** Maps with user-defined keys. A key in them does not determine the type of its value. */
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

/** Fields that contain any JSON, stored as received. */
const UNINTERPRETED_FIELDS = new Set(['ControllerRevision.data'])

export function checkWire(value: unknown, path: string, report: Report): void {
  if (value === null) report(path, 'null is never stored')
  if (typeof value === 'number' && !Number.isFinite(value)) report(path, 'not a finite number')
  if (Array.isArray(value)) for (const [i, item] of value.entries()) checkWire(item, `${path}[${i}]`, report)
  if (!isRecord(value)) return
  for (const [key, inner] of Object.entries(value)) {
    const fieldPath = `${path}.${key}`
    if (UNINTERPRETED_FIELDS.has(fieldPath)) continue
    if (TIMES.has(key) && !isTime(inner)) report(fieldPath, `${format(inner)} is not a UTC time in whole seconds`)
    else if (MICRO_TIMES.has(key) && !isMicroTime(inner))
      report(fieldPath, `${format(inner)} is not a UTC time in microseconds`)
    else if (QUANTITIES.has(key)) checkQuantity(inner, fieldPath, report)
    else if (QUANTITY_MAPS.has(key) && isRecord(inner)) {
      for (const [name, amount] of Object.entries(inner)) {
        if (typeof amount !== 'number') checkQuantity(amount, `${fieldPath}[${name}]`, report) // a CSINode's allocatable is a count
      }
    } else if (key === 'capacity' && typeof inner === 'string') checkQuantity(inner, fieldPath, report)
    if (FREE_MAPS.has(key)) {
      for (const [name, item] of Object.entries(inner ?? {}))
        if (item === null) report(`${fieldPath}[${name}]`, 'null is never stored')
    } else checkWire(inner, fieldPath, report)
  }
}

function checkQuantity(text: unknown, path: string, report: Report): void {
  const amount = parseQuantity(text)
  if (!amount) report(path, `${format(text)} is not a valid quantity`)
  else if (formatQuantity(amount) !== text && !keepsFormat(String(text)))
    report(path, `${format(text)} should be formatted as ${formatQuantity(amount)}`)
}
