// Reads a driver's name, capabilities and node info, and validates the responses. The error messages are written for the driver's
// author: they state what is wrong with the driver or its socket, and what to do.
import { lstat } from 'node:fs/promises'
import { connect } from 'node:net'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import {
  ConnectionError,
  type CsiDriver,
  CsiError,
  type DriverFacts,
  isUnimplemented,
  readDriverFacts,
} from '../../../csi/index.ts'

export interface InspectedDriver {
  readonly facts: DriverFacts
  /** From NodeGetInfo. Undefined if the driver has no Node service. */
  readonly node: DriverNode | undefined
  /** Notes about missing features and inconsistent responses. */
  readonly notes: readonly string[]
}

export interface DriverNode {
  readonly id: string
  readonly segments: Readonly<Record<string, string>>
  /** 0 for no limit. */
  readonly maxVolumes: number
}

/** Timeout of each call. A call that times out is retried. */
export const INSPECT_TIMEOUT_MS = 5_000
const NAME_LENGTH_MAX = 63
const NODE_ID_BYTES_MAX = 192 // limit of CSINode; CSI allows 256

/** The socket does not exist, or no process listens on it, which is normal while a driver starts. */
export class NotListeningError extends Error {
  override readonly name = 'NotListeningError'
}

/** Returns an ID of the socket that changes when the socket is recreated. Throws if there is no socket. */
export async function readSocketId(path: string): Promise<string> {
  const stats = await lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new NotListeningError(`there is no socket at ${path}`)
    throw new Error(`cannot read ${path}: ${error.code}`)
  })
  if (!stats.isSocket()) throw new Error(`${path} is not a socket`)
  return `${stats.ino}:${stats.birthtimeNs}:${stats.ctimeNs}`
}

/** Throws an Error that describes the problem if the driver cannot be used. */
export async function inspectDriver(driver: CsiDriver, path: string, signal: AbortSignal): Promise<InspectedDriver> {
  await checkIdentity(driver, path, signal)
  await checkProbe(driver, signal)
  const notes: string[] = []
  const facts = await readDriverFacts(driver, signal).catch((error) => {
    throw new Error(`cannot read the capabilities of the driver: ${describeError(error)}`)
  })
  if (facts.version === '') notes.push('GetPluginInfo reports no vendor_version, which CSI requires.')
  if (!facts.plugin.has('CONTROLLER_SERVICE') && facts.controller.size > 0)
    notes.push('GetPluginCapabilities does not list CONTROLLER_SERVICE, although the driver has a controller service.')
  const node = await readNode(driver, facts, signal)
  if (!node)
    notes.push(
      'The driver has no Node service (NodeGetInfo is not implemented): claims bind, but pods cannot use the volumes.',
    )
  if (node && facts.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS') && Object.keys(node.segments).length === 0)
    notes.push('The driver reports VOLUME_ACCESSIBILITY_CONSTRAINTS, but NodeGetInfo returns no topology.')
  return { facts, node, notes }
}

async function checkIdentity(driver: CsiDriver, path: string, signal: AbortSignal): Promise<void> {
  const { name } = await driver.identity.getPluginInfo({}, { signal }).catch(async (error) => {
    signal.throwIfAborted()
    if (isUnimplemented(error))
      throw new Error(
        `the server at ${path} does not implement csi.v1.Identity/GetPluginInfo: it is not a CSI driver, or implements CSI 0.x, ` +
          'which Stowage does not support',
      )
    if (!(error instanceof CsiError)) throw error
    if (error.codeName === 'DEADLINE_EXCEEDED')
      throw new Error(
        `the server at ${path} accepts connections, but does not respond to GetPluginInfo within ${INSPECT_TIMEOUT_MS / 1_000} s`,
      )
    if (error instanceof ConnectionError) throw await explainConnection(path)
    throw new Error(`GetPluginInfo failed: ${describeError(error)}`)
  })
  const problem = findNameProblem(name)
  if (problem) throw new Error(problem)
}

/** Finds out why the connection failed: for example, no process listens on the socket, or the process does not speak gRPC. */
function explainConnection(path: string): Promise<Error> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      // Omits the gRPC library's message, which contains the time: the same problem must have the same text to be reported once.
      resolve(new Error(`the process that listens at ${path} does not speak gRPC`))
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(
        code === 'ECONNREFUSED'
          ? new NotListeningError(
              `no process listens at ${path} (ECONNREFUSED): the driver that created the socket has ended`,
            )
          : new Error(`cannot connect to ${path} (${code})`),
      ),
    )
  })
}

/** Returns the problem with a driver's name, or undefined. */
export function findNameProblem(name: string): string | undefined {
  if (name === '') return 'GetPluginInfo returns no name'
  if (name.length > NAME_LENGTH_MAX)
    return `GetPluginInfo returns the name ${JSON.stringify(name)} with ${name.length} characters; CSI allows ${NAME_LENGTH_MAX}`
  const [problem] = dns1123SubdomainProblems(name)
  return problem
    ? `GetPluginInfo returns the name ${JSON.stringify(name)}, for which no CSIDriver or StorageClass can exist: ${problem}`
    : undefined
}

async function checkProbe(driver: CsiDriver, signal: AbortSignal): Promise<void> {
  const response = await driver.identity.probe({}, { signal }).catch((error) => {
    if (isUnimplemented(error)) return undefined // a driver without Probe is assumed to be ready
    throw new Error(`Probe failed: ${describeError(error)}`)
  })
  if (response?.ready === false) throw new Error('Probe reports that the driver is not ready')
}

async function readNode(driver: CsiDriver, { node: capabilities }: DriverFacts, signal: AbortSignal) {
  const info = await driver.node.nodeGetInfo({}, { signal }).catch((error) => {
    if (!isUnimplemented(error)) throw new Error(`NodeGetInfo failed: ${describeError(error)}`)
    if (capabilities.size > 0)
      throw new Error(
        'the driver has a Node service without NodeGetInfo, which Stowage needs to register the driver. Implement NodeGetInfo: it returns the ' +
          'node_id that ControllerPublishVolume gets',
      )
    return undefined
  })
  if (!info) return undefined
  if (info.nodeId === '') throw new Error('NodeGetInfo returns an empty node_id')
  const bytes = Buffer.byteLength(info.nodeId)
  if (bytes > NODE_ID_BYTES_MAX)
    throw new Error(`NodeGetInfo returns a node_id of ${bytes} bytes; a CSINode can hold ${NODE_ID_BYTES_MAX}`)
  const maxVolumes = Number(info.maxVolumesPerNode)
  if (maxVolumes < 0)
    throw new Error(`NodeGetInfo returns max_volumes_per_node ${maxVolumes}, which must not be negative`)
  return { id: info.nodeId, segments: info.accessibleTopology?.segments ?? {}, maxVolumes }
}

const describeError = (error: unknown): string => {
  if (error instanceof CsiError) return error.rpcText
  return error instanceof Error ? error.message : String(error)
}
