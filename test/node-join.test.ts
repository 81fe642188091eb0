// Joins nodes to a real server: tokens with `stowage token`, `stowage node --join`, and requests with a node's certificate.
import { execFile } from 'node:child_process'
import { createHmac, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCertificationRequest } from '../src/api/certification-request.ts'
import { systemClock, systemRandom } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { type NodeFlags, runNode } from '../src/cli/commands/node/run.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { runStowage } from './helpers/run-stowage.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const runProgram = (path: string, args: readonly string[]): Promise<{ stdout: string; stderr: string; code: number }> =>
  promisify(execFile)(path, args).then(
    (result) => ({ ...result, code: 0 }),
    (error) => error,
  )

describe('joining a cluster', () => {
  let dir: string
  let server: RunningServer

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-join-'))
    server = await startServer({ dataDir: join(dir, 'data') })
  })
  afterAll(async () => {
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  })

  interface CreatedToken {
    readonly token: string
    readonly caCertHash: string
  }

  async function createToken(node: string, ...flags: string[]): Promise<CreatedToken> {
    const args = ['token', 'create', '--node', node, '--kubeconfig', server.kubeconfig, '--output', 'json', ...flags]
    const { stdout, stderr, code } = await runStowage(...args)
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }

  /** Runs `stowage node` until it is ready, then stops it. Returns the node's name. */
  async function runUntilReady(flags: Partial<NodeFlags>): Promise<string> {
    const stop = new AbortController()
    let nodeName = ''
    const run = runNode(
      { rootDir: join(dir, 'root'), runCommands: false, maxPods: '10', ...flags },
      {
        clock: systemClock(),
        random: systemRandom(),
        log: silentLog,
        signal: stop.signal,
        env: {},
        onReady(readyNode) {
          nodeName = readyNode.nodeName
          stop.abort()
        },
      },
    )
    await run
    return nodeName
  }

  const joinFlags = (node: string, { token, caCertHash }: CreatedToken) => ({
    nodeName: node,
    rootDir: join(dir, node),
    join: server.url,
    token,
    caCertHash: [caCertHash],
  })

  it('SYS-9 gives a node a certificate, which the node uses and keeps across restarts', async () => {
    expect(await runUntilReady(joinFlags('worker-1', await createToken('worker-1')))).toBe('worker-1')
    const rootDir = join(dir, 'worker-1')
    const file = join(rootDir, 'pki', 'node.pem')
    const pem = await readFile(file, 'utf8')
    expect(new X509Certificate(pem).subject).toBe('O=system:nodes\nCN=system:node:worker-1')
    expect(pem).toContain('PRIVATE KEY')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const node = (await server.call('GET', '/api/v1/nodes/worker-1')).json
    expect(node.status.conditions.find(({ type }: { type: string }) => type === 'Ready').status).toBe('True')
    expect(await runUntilReady({ rootDir })).toBe('worker-1') // without a token
    expect(await readFile(file, 'utf8')).toBe(pem)
    await expect(runUntilReady({ rootDir, nodeName: 'worker-9' })).rejects.toThrow('has joined as node "worker-1"')
  })

  it('SYS-9 rejects a token for another node, an expired one and a deleted one, with the reason', async () => {
    const token = await createToken('worker-2')
    await expect(runUntilReady(joinFlags('worker-3', token))).rejects.toThrow(
      /Cannot join .* as node "worker-3": .*the bootstrap token is for node "worker-2".*stowage token create --node worker-3/,
    )
    const [id] = token.token.split('.')
    const secret = `/api/v1/namespaces/kube-system/secrets/bootstrap-token-${id}`
    const expiredAt = new Date(Date.now() - 3_600_000).toISOString().slice(0, 19)
    const expiration = Buffer.from(`${expiredAt}Z`).toString('base64')
    const headers = { 'content-type': 'application/merge-patch+json' }
    expect((await server.call('PATCH', secret, { data: { expiration } }, headers)).status).toBe(200)
    await expect(runUntilReady(joinFlags('worker-2', token))).rejects.toThrow(
      new RegExp(`bootstrap token "${id}" expired at ${expiredAt}.*Create a token for this node`),
    )
    const list = await runStowage('token', 'list', '--kubeconfig', server.kubeconfig)
    expect(list.stdout).toMatch(new RegExp(`${id} +worker-2 +${expiredAt}Z \\(expired\\)`))
    expect(list.stdout).not.toContain(token.token)
    expect((await runStowage('token', 'delete', id!, '--kubeconfig', server.kubeconfig)).stdout).toBe(
      `Token ${id} deleted.\n`,
    )
    await expect(runUntilReady(joinFlags('worker-2', token))).rejects.toThrow('the bearer token is not known')
  })

  it('SYS-9 signs the published CA with the token', async () => {
    const { token } = await createToken('worker-5')
    const [id, secret] = token.split('.') as [string, string]
    const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
    let data: Record<string, string> = {}
    while (!data[`jws-kubeconfig-${id}`]) ({ data } = (await server.call('GET', path)).json)
    const [header, payload, signature] = data[`jws-kubeconfig-${id}`]!.split('.')
    expect(payload).toBe('')
    const signedText = `${header}.${Buffer.from(data.kubeconfig!).toString('base64url')}`
    expect(createHmac('sha256', secret).update(signedText).digest('base64url')).toBe(signature)
  })

  it('SYS-9 rejects a server with another CA, an invalid hash, and --join without a token', async () => {
    const token = await createToken('worker-4')
    const caCertHash = [`sha256:${'0'.repeat(64)}`]
    await expect(runUntilReady({ ...joinFlags('worker-4', token), caCertHash })).rejects.toThrow(
      /has the hash sha256:[0-9a-f]{64}, which does not match --ca-cert-hash/,
    )
    await expect(runUntilReady({ ...joinFlags('worker-4', token), caCertHash: ['abc'] })).rejects.toThrow(
      'expected sha256:',
    )
    await expect(runUntilReady({ ...joinFlags('worker-4', token), token: undefined })).rejects.toThrow(
      '--join requires --token',
    )
  })

  it("SYS-9 limits a node's certificate to its own objects, as kubectl shows", async (context) => {
    const [kubectl] = await findKubectls()
    if (!kubectl) return context.skip('no kubectl on this machine')
    const kubeconfig = join(dir, 'worker-1', 'kubeconfig')
    const canI = async (...args: string[]) =>
      (await runProgram(kubectl.path, ['--kubeconfig', kubeconfig, 'auth', 'can-i', ...args])).stdout
        .trim()
        .split(' ')[0]
    expect(await canI('get', 'nodes/worker-1')).toBe('yes')
    expect(await canI('get', 'nodes/worker-2')).toBe('no')
    expect(await canI('get', 'secrets', '--all-namespaces')).toBe('no')
    expect(await canI('list', 'persistentvolumes')).toBe('no')
    expect(await canI('update', 'csinodes/worker-1')).toBe('yes')
    expect(await canI('update', 'csinodes/worker-2')).toBe('no')
    const kubectlRun = (...args: string[]) => runProgram(kubectl.path, ['--kubeconfig', kubeconfig, ...args])
    const label = 'node-restriction.kubernetes.io/pool=x'
    expect((await kubectlRun('label', 'node', 'worker-1', label)).stderr).toContain('is not allowed to modify labels')
    expect((await kubectlRun('label', 'node', 'worker-1', 'topology.kubernetes.io/zone=z')).code).toBe(0)
  })

  it('SYS-9 lets an administrator approve and deny certificates with kubectl', async (context) => {
    const [kubectl] = await findKubectls()
    if (!kubectl) return context.skip('no kubectl on this machine')
    const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const kubectlRun = (...args: string[]) => runProgram(kubectl.path, ['--kubeconfig', server.kubeconfig, ...args])
    for (const name of ['ann', 'bob']) {
      const request = Buffer.from(createCertificationRequest({ subject: { commonName: name }, key })).toString('base64')
      const spec = { request, signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] }
      const createResponse = await server.call('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
        metadata: { name },
        spec,
      })
      expect(createResponse.status).toBe(201)
    }
    expect((await kubectlRun('certificate', 'approve', 'ann')).stdout).toContain('ann approved')
    expect((await kubectlRun('certificate', 'deny', 'bob')).stdout).toContain('bob denied')
    await expect
      .poll(async () => (await kubectlRun('get', 'csr', 'ann', '--no-headers')).stdout, { timeout: 10_000 })
      .toContain('Approved,Issued')
    expect((await kubectlRun('get', 'csr', 'bob', '--no-headers')).stdout).toContain('Denied')
  })
})
