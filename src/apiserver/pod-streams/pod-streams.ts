// Serves the logs and commands of pods: forwards the request to the agent of the pod's node. For exec and attach, the
// upgraded connections of client and agent are joined byte by byte; the agent implements the protocol.

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError, badRequest, notFound, tooManyRequests, unavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { ApiRequest, ApiResponse, StreamSink } from '../http/messages.ts'
import type { ResourceRequest } from '../http/route.ts'
import { objectKey } from '../keys.ts'
import type { ObjectDeps } from '../objects/object-deps.ts'
import { decodeStored } from '../objects/stored-object.ts'
import type { Resource } from '../resources.ts'
import type { UserInfo } from '../security/index.ts'
import { getObject } from '../verbs/get.ts'
import type { NodeConnections } from './node-connection.ts'
import { isStreamSubresource, planStream } from './plan-stream.ts'

export interface PodStreams {
  /** Whether this is a request for a stream of a pod. */
  handles(route: ResourceRequest): boolean
  /** Throws 4xx, or 5xx if the agent cannot be reached. */
  handle(call: PodStreamCall): Promise<ApiResponse>
}

export interface PodStreamCall {
  readonly request: ApiRequest
  readonly route: ResourceRequest
  readonly resource: Resource
  readonly user: UserInfo
  /** Called with the open stream, so that it can be ended when the user's credentials are revoked. */
  track(stream: Pick<StreamSink, 'end' | 'onClose'>): void
}

/** Maximum number of open streams of the server. Further requests get 429. */
const STREAMS_MAX = 1_000
/** Maximum number of open streams of one user. Further requests get 429. */
const USER_STREAMS_MAX = 100
/** An error message of an agent is cut to this length. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** Bytes of a log that wait to be sent. Beyond this, reading from the agent pauses. */
const LOG_BYTES_WAITING_MAX = 256 * 1024

export function createPodStreams(deps: ObjectDeps, connections: NodeConnections | undefined): PodStreams {
  const streamsByUser = new Map<string, number>()
  let streams = 0

  /** Counts an open stream. Returns a function that stops counting it and may be called more than once. Throws 429. */
  function reserve({ name }: UserInfo): () => void {
    const userStreams = streamsByUser.get(name) ?? 0
    if (userStreams >= USER_STREAMS_MAX) {
      throw tooManyRequests(
        `user ${JSON.stringify(name)} has ${userStreams} open logs and sessions, the maximum; close some, or try again later`,
      )
    }
    if (streams >= STREAMS_MAX) {
      throw tooManyRequests(
        `the server has reached its limit of ${STREAMS_MAX} open logs and sessions; try again later`,
      )
    }
    streams++
    streamsByUser.set(name, userStreams + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      streams--
      const remaining = streamsByUser.get(name)! - 1
      if (remaining === 0) streamsByUser.delete(name)
      else streamsByUser.set(name, remaining)
    }
  }

  async function readNode(name: string): Promise<Node> {
    const entry = await deps.store.get(objectKey(nodeKind, '', name))
    if (!entry) throw notFound(nodeKind, name)
    return decodeStored(entry) as Node
  }

  return {
    handles: ({ group, plural, subresource, name }) =>
      group === '' && plural === 'pods' && name !== '' && isStreamSubresource(subresource),
    async handle(call) {
      const { request, route, resource, user } = call
      const entry = await getObject(deps, resource, route.namespace, route.name, 0)
      const subresource = route.subresource as Parameters<typeof planStream>[1]
      const plan = planStream(decodeStored(entry) as Pod, subresource, request.query)
      if (!plan) return { status: 204, headers: {} }
      const isLog = subresource === 'log'
      if (!isLog && !request.headers.upgrade) throw badRequest('Upgrade request required')
      if (!connections) throw unavailable('this server has no connection to nodes')
      const node = await readNode(plan.nodeName)
      const release = reserve(user)
      const end = new AbortController()
      try {
        const headers = isLog ? {} : upgradeHeaders(request)
        const agentResponse = await connections.send({
          node,
          method: request.method,
          path: plan.path,
          headers,
          signal: end.signal,
        })
        if (agentResponse.is === 'upgraded') return tunnelResponse(agentResponse, call, release, deps.clock)
        if (isLog && agentResponse.response.statusCode === 200)
          return logResponse(agentResponse.response, call, release, deps.clock)
        const text = await readText(agentResponse.response)
        if (isLog) throw logError(agentResponse.response.statusCode ?? 500, text)
        release()
        return textResponse(agentResponse.response, text)
      } catch (error) {
        release()
        end.abort()
        throw error
      }
    },
  }
}

/** Headers of an upgrade that the agent needs. Extensions such as compression, and a browser's token, are omitted. */
function upgradeHeaders(request: ApiRequest): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {
    connection: 'Upgrade',
    upgrade: request.headers.upgrade!,
  }
  for (const name of ['sec-websocket-key', 'sec-websocket-version', 'x-stream-protocol-version']) {
    const values = request.headerValues(name)
    if (values.length > 0) headers[name] = values
  }
  const protocols = request
    .headerValues('sec-websocket-protocol')
    .flatMap((value) => value.split(','))
    .map((value) => value.trim())
    .filter((value) => value !== '' && !value.startsWith(TOKEN_PROTOCOL))
  if (protocols.length > 0) headers['sec-websocket-protocol'] = protocols.join(', ')
  return headers
}

const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'

interface UpgradedAgent {
  readonly response: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
}

/** Time in which the listener must take over the response. After a disconnect or timeout of the client, it does not. */
const TAKEOVER_MS_MAX = 10_000

function tunnelResponse(
  agent: UpgradedAgent,
  { track }: PodStreamCall,
  release: () => void,
  clock: Pick<Clock, 'after'>,
): ApiResponse {
  const cancelTimer = clock.after(TAKEOVER_MS_MAX, () => agent.socket.destroy())
  agent.socket.on('error', () => agent.socket.destroy())
  agent.socket.once('close', release)
  const names = ['connection', 'upgrade', 'sec-websocket-accept', 'sec-websocket-protocol', 'x-stream-protocol-version']
  const headers = Object.fromEntries(
    names.flatMap((name) => (agent.response.headers[name] ? [[name, agent.response.headers[name]!]] : [])),
  )
  return {
    status: 101,
    headers,
    tunnel(client, head) {
      cancelTimer()
      if (client.destroyed) return void agent.socket.destroy()
      track({ end: () => void client.destroy(), onClose: (run) => void client.once('close', run) })
      join(client, head, agent)
    },
  }
}

/** Copies bytes in both directions. When the agent closes its connection, the client still receives the pending bytes. */
function join(client: Duplex, head: Uint8Array, { socket: agent, head: agentHead }: UpgradedAgent): void {
  if (agentHead.length > 0) client.write(agentHead)
  if (head.length > 0) agent.write(head)
  client.pipe(agent)
  agent.pipe(client)
  client.once('close', () => agent.destroy())
  agent.once('close', () => client.end())
  client.on('error', () => client.destroy())
}

function logResponse(
  response: IncomingMessage,
  { track }: PodStreamCall,
  release: () => void,
  clock: Pick<Clock, 'after'>,
): ApiResponse {
  response.once('close', release)
  const cancelTimer = clock.after(TAKEOVER_MS_MAX, () => response.destroy())
  return {
    status: 200,
    headers: { 'content-type': 'text/plain', 'cache-control': 'no-cache, private' },
    stream(sink) {
      cancelTimer()
      track(sink)
      sink.onClose(() => response.destroy())
      response.on('data', (chunk: Buffer) => {
        sink.write(chunk)
        if (sink.pendingBytes < LOG_BYTES_WAITING_MAX) return
        response.pause()
        sink.onDrain(() => response.resume())
      })
      response.once('end', () => sink.end())
      response.once('error', () => sink.cut()) // the client must not mistake a partial log for a complete one
      response.once('aborted', () => sink.cut())
    },
  }
}

/** The agent's response to a request that it did not upgrade. kubectl prints its text. */
const textResponse = ({ statusCode = 500, headers }: IncomingMessage, text: string): ApiResponse => ({
  status: statusCode,
  headers: {
    'content-type': 'text/plain; charset=utf-8',
    ...(headers['retry-after'] ? { 'retry-after': headers['retry-after'] } : {}),
    ...(headers['x-accepted-stream-protocol-versions']
      ? { 'x-accepted-stream-protocol-versions': headers['x-accepted-stream-protocol-versions'] }
      : {}),
  },
  body: Buffer.from(text),
})

function logError(status: number, text: string): ApiError {
  if (status === 400) return badRequest(text)
  if (status === 404) return new ApiError(404, 'NotFound', text)
  if (status === 429) return tooManyRequests(text)
  return new ApiError(500, 'InternalError', text)
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MESSAGE_BYTES_MAX) break
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, MESSAGE_BYTES_MAX)
}
