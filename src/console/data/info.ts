// Reads the version of the API server, the current user, and the features available to the console. If the server is
// unreachable, fails or rejects the credentials, the result contains the problem.
import { ApiError } from '../../api/status-error.ts'
import type { Transport } from '../../client/http/transport.ts'
import { parseResponse, type WireObject } from '../../client/http/wire.ts'
import type { ConsoleInfo, Feature } from '../protocol.ts'

export interface InfoOptions {
  readonly transport: Transport
  readonly server: string
  readonly namespace: string
  readonly version: string
  readonly kubeconfig: string | undefined
  readonly context: string | undefined
}

const STOWAGE_API = '/apis/stowage.dev/v1'
const NOT_STOWAGE = 'the API server does not serve the group stowage.dev'

export async function readInfo(options: InfoOptions): Promise<ConsoleInfo> {
  const { server: url, namespace, version: consoleVersion, kubeconfig, context } = options
  const common = {
    namespace,
    consoleVersion,
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  }
  try {
    const [version, resources, userInfo] = await Promise.all([
      readVersion(options),
      readResources(options),
      readUser(options),
    ])
    return {
      ...common,
      ...userInfo,
      server: { url, ...(version ? { version } : {}), isStowage: resources !== undefined },
      features: await readFeatures(resources, options),
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { message } = error
    const missing: Feature = { available: false, reason: message }
    const features = { operations: missing, journal: missing, metrics: missing, nodeStats: missing, bulk: missing }
    return { ...common, server: { url, isStowage: false, problem: message }, features }
  }
}

async function send({ transport }: InfoOptions, method: 'GET' | 'POST', path: string, body?: object) {
  return parseResponse(
    await transport.call({ method, path, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }),
  )
}

/** Returns undefined for a 4xx response other than 401. */
async function trySend(...request: Parameters<typeof send>): Promise<WireObject | undefined> {
  return send(...request).catch((error: unknown) => {
    if (error instanceof ApiError && error.code >= 400 && error.code < 500 && error.code !== 401) return undefined
    throw error
  })
}

const readVersion = async (options: InfoOptions): Promise<string | undefined> =>
  (await trySend(options, 'GET', '/version'))?.gitVersion

/** Returns the resources of the group stowage.dev, or undefined if it is not served. */
async function readResources(options: InfoOptions): Promise<readonly string[] | undefined> {
  const list = await trySend(options, 'GET', STOWAGE_API)
  return list?.resources?.map(({ name }: { name: string }) => name)
}

async function readUser(options: InfoOptions): Promise<{ user?: string; groups?: readonly string[] }> {
  const api = 'authentication.k8s.io/v1'
  const body = { apiVersion: api, kind: 'SelfSubjectReview' }
  const review = await trySend(options, 'POST', `/apis/${api}/selfsubjectreviews`, body)
  const { username, groups } = review?.status?.userInfo ?? {}
  return { ...(username ? { user: username } : {}), ...(groups ? { groups } : {}) }
}

async function isAllowed(options: InfoOptions, spec: object): Promise<boolean> {
  const api = 'authorization.k8s.io/v1'
  const body = { apiVersion: api, kind: 'SelfSubjectAccessReview', spec }
  const review = await trySend(options, 'POST', `/apis/${api}/selfsubjectaccessreviews`, body)
  return review?.status?.allowed === true
}

async function readFeatures(
  resources: readonly string[] | undefined,
  options: InfoOptions,
): Promise<ConsoleInfo['features']> {
  const featureOfResource = (resource: string): Feature => {
    if (!resources) return { available: false, reason: NOT_STOWAGE }
    if (resources.includes(resource)) return { available: true }
    return { available: false, reason: `the API server does not serve ${resource}.stowage.dev` }
  }
  const metrics = resources
    ? await featureIfAllowed(
        options,
        { nonResourceAttributes: { verb: 'get', path: '/metrics' } },
        'get the path /metrics',
      )
    : { available: false, reason: `${NOT_STOWAGE}, so its metrics do not cover volumes` }
  const nodesProxy = { resourceAttributes: { verb: 'get', group: '', resource: 'nodes', subresource: 'proxy' } }
  return {
    operations: featureOfResource('operations'),
    journal: featureOfResource('timelinereviews'),
    metrics,
    nodeStats: resources ? metrics : await featureIfAllowed(options, nodesProxy, 'get nodes/proxy'),
    bulk: { available: true },
  }
}

async function featureIfAllowed(options: InfoOptions, spec: object, rule: string): Promise<Feature> {
  return (await isAllowed(options, spec))
    ? { available: true }
    : { available: false, reason: `you need permission to ${rule}` }
}
