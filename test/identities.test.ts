// Uses claims, tokens and certificates with `stowage up` and kubectl, and checks that the server denies no request of its own
// components.
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCertificationRequest } from '../src/api/certification-request.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { findKubectls } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl, type Kubectl } from './kubectl/kubectl.ts'

const program = (await findKubectls()).at(-1)
const DRIVER = 'local.csi.stowage.dev'
const SIGNER = 'kubernetes.io/kube-apiserver-client'

describe.skipIf(!program && process.env.CI !== 'true')('the identities of components (needs a kubectl on PATH)', () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  let kubectl: Kubectl
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-identities-')))
    await mkdir(join(dir, 'data'))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '2Gi'] })
    kubectl = createKubectl({ program: program!, kubeconfig: server.kubeconfig, namespace: 'default', home: dir })
  })
  afterAll(async () => {
    await server?.kill()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  const apply = (...items: object[]) =>
    kubectl.out('apply -f -', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) })
  const waitFor = (object: string, condition: string) =>
    kubectl.out(['wait', object, `--for=${condition}`, '--timeout=60s'])
  const claimManifest = (name: string, spec: object = {}) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '256Mi' } }, ...spec },
  })
  const podManifest = (name: string, claimName: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
  })

  const requestCertificate = () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = createCertificationRequest({ subject: { commonName: 'ann', organizations: ['team'] }, key: privateKey })
    const spec = { request: Buffer.from(pem).toString('base64'), signerName: SIGNER, usages: ['client auth'] }
    return apply({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'ann' },
      spec,
    })
  }

  it('SYS-23 suffice to fill the Secret of a token, and to revoke the token with its Secret', async () => {
    await kubectl.out('create serviceaccount robot')
    const annotations = { 'kubernetes.io/service-account.name': 'robot' }
    const type = 'kubernetes.io/service-account-token'
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', annotations }, type })
    await waitFor('secret/key', `jsonpath={.data.namespace}=${Buffer.from('default').toString('base64')}`)
    const token = Buffer.from(await kubectl.out('get secret key -o jsonpath={.data.token}'), 'base64').toString()
    const whoAmI = () =>
      server.call(
        'POST',
        '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        { authorization: `Bearer ${token}` },
      )
    expect((await whoAmI()).json.status.userInfo.username).toBe('system:serviceaccount:default:robot')
    await kubectl.out('delete secret key')
    expect((await whoAmI()).status).toBe(401)
  })

  it('SYS-9 suffice to sign an approved certificate', async () => {
    await requestCertificate()
    await kubectl.out('certificate approve ann')
    await waitFor('csr/ann', 'jsonpath={.status.certificate}')
  })

  it('SYS-9 suffice to create, use, expand, modify, copy and delete claims', async () => {
    const attributes = { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttributesClass', driverName: DRIVER }
    await apply({ ...attributes, metadata: { name: 'gold' }, parameters: { iops: '500' } })
    await apply(claimManifest('orders'), podManifest('shop', 'orders'))
    await waitFor('pod/shop', 'jsonpath={.status.phase}=Running')
    await kubectl.out(['patch', 'pvc', 'orders', '-p', '{"spec":{"resources":{"requests":{"storage":"512Mi"}}}}'])
    await waitFor('pvc/orders', 'jsonpath={.status.capacity.storage}=512Mi')
    await kubectl.out(['patch', 'pvc', 'orders', '-p', '{"spec":{"volumeAttributesClassName":"gold"}}'])
    await waitFor('pvc/orders', 'jsonpath={.status.currentVolumeAttributesClassName}=gold')
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'orders' }
    const copySpec = { dataSource, resources: { requests: { storage: '512Mi' } } }
    await apply(claimManifest('copy', copySpec), podManifest('reader', 'copy'))
    await waitFor('pod/reader', 'jsonpath={.status.phase}=Running')
    await kubectl.out('delete pod shop reader')
    await kubectl.out('delete pvc orders copy')
    await kubectl.out('delete volumeattributesclass gold')
    await kubectl.out('create namespace temporary')
    await kubectl.out('delete namespace temporary')
    const { text } = await server.call('GET', '/metrics')
    expect(text).toContain('# TYPE stowage_missing_rights gauge')
    expect(text.split('\n').filter((line) => line.startsWith('stowage_missing_rights'))).toEqual([])
    expect(await server.stop()).toBe(0) // fails if the log reports a missing permission
  }, 120_000)
})
