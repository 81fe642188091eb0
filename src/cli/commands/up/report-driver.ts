// Prints the drivers of `stowage up --driver`: what was found and created when a driver is ready, its problems, and its recovery.
import type { Logger } from '../../../base/log.ts'
import { describeCapabilities } from '../../../processes/server/drivers/derive-objects.ts'
import type { DriverReport, InstanceReport } from '../../../processes/server/drivers/start-drivers.ts'
import type { ProgramDeps } from '../../command.ts'

export interface DriverOutput extends Pick<ProgramDeps, 'write'> {
  /** Undefined for text. */
  readonly formatValue: ((value: object) => string) | undefined
  /** Whether output and log appear on one terminal. */
  readonly isTerminal: boolean
  readonly log: Logger
}

type ReadyReport = Extract<DriverReport, { is: 'ready' }>
type ProblemReport = Extract<DriverReport, { is: 'problem' }>

export function reportDriver(
  report: DriverReport,
  { formatValue, isTerminal, log, write }: DriverOutput,
  startMs: number,
): void {
  if (report.is === 'problem') {
    const { is: _is, ...problem } = report
    if (formatValue || !isTerminal) log.warn(problem, 'a driver is not ready; retrying')
    write(formatValue?.({ driverProblem: problem, startMs }) ?? formatProblem(report))
    return
  }
  if (report.is === 'recovered') {
    const { is: _is, ...recoveredDriver } = report
    if (formatValue || !isTerminal) log.info(recoveredDriver, 'the driver is ready again')
    write(formatValue?.({ recoveredDriver }) ?? formatRecovered(report))
    return
  }
  const { driver, source, instances } = report
  if (formatValue || !isTerminal)
    log.info({ driver, source, nodes: instances.flatMap(({ host }) => host ?? []) }, 'the driver is ready')
  write(formatValue?.({ driver: toValue(report), startMs }) ?? formatReady(report, startMs))
}

/** The report as `--output json` prints it. */
function toValue({ driver, source, instances }: ReadyReport): object {
  const { facts, objects } = instances[0]!
  return {
    name: driver,
    version: facts.version,
    source,
    capabilities: describeCapabilities(facts),
    csiDriver: objects.csiDriver.spec,
    ...(objects.storageClass
      ? { class: objects.storageClass.metadata.name, isDefaultClass: objects.isDefaultClass }
      : {}),
    nodes: instances.map(({ host, node, role, socket, pid, logFile }) => ({
      ...(host === undefined ? {} : { name: host }),
      ...(node ? { id: node.id, topology: node.segments } : {}),
      role,
      socket,
      ...(pid === undefined ? {} : { pid }),
      ...(logFile === undefined ? {} : { log: logFile }),
    })),
    notes: listNotes(instances),
  }
}

export function formatReady({ driver, source, instances }: ReadyReport, startMs: number): string {
  const { facts, objects } = instances[0]!
  const { csiDriver, storageClass, isDefaultClass } = objects
  const { attachRequired, storageCapacity, fsGroupPolicy } = csiDriver.spec
  const classTexts = storageClass && [
    `${storageClass.metadata.name}${isDefaultClass ? ' (default)' : ''}`,
    storageClass.volumeBindingMode ?? 'Immediate',
    storageClass.allowVolumeExpansion ? 'expandable' : 'not expandable',
  ]
  const logFiles = instances.flatMap(({ logFile }) => logFile ?? [])
  const rows: (readonly [string, string])[] = [
    ['driver', source],
    ...instances.map((instance) => ['node', formatNode(instance)] as const),
    ['can', describeCapabilities(facts).join(', ') || 'nothing that CSI makes optional'],
    [
      'CSIDriver',
      `attachRequired ${attachRequired}, storageCapacity ${storageCapacity}, fsGroupPolicy ${fsGroupPolicy}`,
    ],
    ...(classTexts ? [['class', classTexts.join(', ')] as const] : []),
    ...(facts.controller.has('MODIFY_VOLUME')
      ? [['attributes', `VolumeAttributesClasses with driverName ${driver}`] as const]
      : []),
    ['controller', formatController(instances)],
    ...logFiles.map((path) => ['log', path] as const),
    ...listNotes(instances).map((note) => ['note', note] as const),
  ]
  const version = facts.version === '' ? '' : ` ${facts.version}`
  return `\nDriver ${driver}${version} ready (${startMs} ms).\n${rows.map(formatRow).join('')}`
}

function formatProblem({ source, node, reason, output, logFile }: ProblemReport): string {
  const rows: (readonly [string, string])[] = [
    ...(node === undefined ? [] : [['node', node] as const]),
    ...output.map((line, index) => [index === 0 ? 'output' : '', line] as const),
    ...(logFile === undefined ? [] : [['log', logFile] as const]),
  ]
  return `\nDriver ${source} is not ready: ${reason}. Retrying.\n${rows.map(formatRow).join('')}`
}

function formatRecovered({ driver, node, pid }: Extract<DriverReport, { is: 'recovered' }>): string {
  return `\nDriver ${driver} is ready again${node === undefined ? '' : ` on ${node}`}${pid === undefined ? '' : ` (pid ${pid})`}.\n`
}

const formatRow = ([name, text]: readonly [string, string]): string => `  ${name.padEnd(12)}${text}\n`

function formatNode({ host, node, pid }: InstanceReport): string {
  if (host === undefined) return `none in this process${pid === undefined ? '' : `, pid ${pid}`}`
  if (!node) return `not registered on ${host}`
  const topology = Object.entries(node.segments).map(([key, value]) => `${key}=${value}`)
  const texts = [
    `node ID ${node.id}`,
    ...topology,
    ...(node.maxVolumes > 0 ? [`at most ${node.maxVolumes} volumes`] : []),
  ]
  return [host, ...texts, ...(pid === undefined ? [] : [`pid ${pid}`])].join(', ')
}

function formatController(instances: readonly InstanceReport[]): string {
  if (instances.some(({ role }) => role === 'node'))
    return 'each node calls its own driver, because the topology contains the node'
  const served = instances.find(({ role }) => role === 'cluster')
  return `calls go to ${served?.socket ?? 'the driver of the first node'}`
}

function listNotes(instances: readonly InstanceReport[]): string[] {
  const notes = instances.flatMap(({ notes: ownNotes, objects, host, socket }) => [
    ...ownNotes,
    ...objects.notes,
    ...(host === undefined
      ? [`Pods can use the volumes on nodes that have registered the driver: stowage node --driver-socket ${socket}`]
      : []),
  ])
  return [...new Set(notes)]
}
