import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { addFlags } from '../../flags/flag-types.ts'
import { SIDECAR_FLAGS } from './flags.ts'
import { replaceContainers } from './replace-containers.ts'
import { readSidecarSettings } from './settings.ts'

/** A deployment like those of upstream drivers. */
const DEPLOYMENT = `# The controller of the driver.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: csi-disks
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: csi-disks-controller
spec:
  replicas: 2
  template:
    spec:
      serviceAccountName: csi-disks
      containers:
        - name: disks-plugin # the driver
          image: registry.example.com/disks:1.0
          args: [--endpoint=$(CSI_ENDPOINT)]
        - name: csi-attacher
          image: registry.example.com/csi/csi-attacher:v4.12.0
          args:
            - --csi-address=$(ADDRESS)
            - -v=5
            - -timeout=6m
            - --leader-election=true
            - --resync=10m
            - --http-endpoint=:3303
          env:
            - name: ADDRESS
              value: /csi/csi.sock
          volumeMounts:
            - name: socket-dir
              mountPath: /csi
          ports:
            - name: attacher-metrics
              containerPort: 3303
        - name: csi-provisioner
          image: registry.example.com/csi/csi-provisioner@sha256:0123
          command: [/csi-provisioner]
          args:
            - --csi-address=$(ADDRESS)
            - --v=2
            - --timeout
            - 60s
            - --feature-gates=Topology=true
            - --extra-create-metadata
            - --leader-election
            - --kube-api-qps=20
            - --worker-threads=100
            - --http-endpoint=:3302
          env:
            - name: ADDRESS
              value: /csi/csi.sock
            - name: NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
          volumeMounts:
            - name: socket-dir
              mountPath: /csi
        - name: csi-resizer
          image: registry.example.com/csi/csi-resizer:v2.2.0
          args: [--csi-address=$(ADDRESS), --timeout=60s, --leader-election, --handle-volume-inuse-error=false, --workers=100]
        - name: liveness-probe
          image: registry.example.com/csi/livenessprobe:v2.19.0
      volumes:
        - name: socket-dir
          emptyDir: {}
`

const aPod = (args: string) => `
kind: Pod
spec:
  containers:
    - name: p
      image: csi-provisioner:v6
      args: ${args}
`
const argsOfReplacement = (manifest: string): string[] =>
  parseAllDocuments(replaceContainers(manifest, 'stowage:1'))[0]!.toJS().spec.containers[0].args

describe('stowage sidecar --print-replacement', () => {
  it('PLUS-5 replaces the containers of the upstream sidecars with one, and keeps the others', () => {
    const text = replaceContainers(DEPLOYMENT, 'stowage:1')
    const [account, deployment] = parseAllDocuments(text).map((document) => document.toJS())
    expect(account).toMatchObject({ kind: 'ServiceAccount' })
    const { containers, volumes, serviceAccountName } = deployment.spec.template.spec
    expect({ serviceAccountName, volumes }).toEqual({
      serviceAccountName: 'csi-disks',
      volumes: [{ name: 'socket-dir', emptyDir: {} }],
    })
    expect(containers.map(({ name }: { name: string }) => name)).toEqual([
      'disks-plugin',
      'csi-provisioner',
      'liveness-probe',
    ])
    expect(containers[1]).toEqual({
      name: 'csi-provisioner',
      image: 'stowage:1',
      args: [
        'sidecar',
        '--controllers=provisioner,resizer,attacher',
        '--csi-address=$(ADDRESS)',
        '--v=5',
        '--provisioner-timeout=60s',
        '--resizer-timeout=60s',
        '--attacher-timeout=6m',
        '--feature-gates=Topology=true',
        '--extra-create-metadata',
        '--leader-election',
        '--kube-api-qps=30',
        '--worker-threads=210',
        '--provisioner-worker-threads=100',
        '--http-endpoint=:3302',
        '--handle-volume-inuse-error=false',
        '--workers=100',
        '--hold-upstream-leases',
      ],
      env: [
        { name: 'ADDRESS', value: '/csi/csi.sock' },
        { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      ],
      volumeMounts: [{ name: 'socket-dir', mountPath: '/csi' }],
      ports: [{ name: 'attacher-metrics', containerPort: 3303 }],
    })
    expect(text).toContain('# The controller of the driver.')
    expect(text).toContain('# the driver')
    expect(text).toContain(
      '# --http-endpoint=:3303 of csi-attacher is left out: csi-provisioner has --http-endpoint=:3302.',
    )
  })

  it('PLUS-5 runs only the controllers whose containers it replaces', () => {
    expect(argsOfReplacement(aPod('[--csi-address=/s, --timeout=1m, --timeout=2m]'))).toEqual([
      'sidecar',
      '--controllers=provisioner',
      '--csi-address=/s',
      '--timeout=2m',
    ])
  })

  it('PLUS-5 notes the required update strategy if there is no leader election', () => {
    expect(replaceContainers(aPod('[]'), 'stowage:1')).toContain(
      '# Without --leader-election, pods of the old and the new version must not run at the same time',
    )
  })

  it('PLUS-5 merges feature gates, including those of a repeated flag', () => {
    expect(
      argsOfReplacement(aPod('[--feature-gates=Topology=true, --feature-gates=VolumeAttributesClass=false]')),
    ).toContain('--feature-gates=Topology=true,VolumeAttributesClass=false')
  })

  it('PLUS-5 prefers the feature gates of the provisioner, and notes those that it leaves out', () => {
    const replacedText = replaceContainers(
      `${aPod('[--feature-gates=Topology=true]')}    - image: csi-resizer:v2\n      args: [--feature-gates=Topology=false]\n`,
      'stowage:1',
    )
    expect(replacedText).toContain('--feature-gates=Topology=true\n')
    expect(replacedText).toContain(
      '# The feature gate Topology=false of csi-resizer is left out: csi-provisioner has Topology=true.',
    )
  })

  it.each([
    ['--leader-election=1', true],
    ['--leader-election=True', true],
    ['--leader-election=$(ELECT)', true],
    ['--leader-election=F', false],
  ])('PLUS-5 with the argument %s, the replacement has --leader-election: %s', (argument, isElecting) => {
    expect(argsOfReplacement(aPod(`[${argument}]`)).includes('--leader-election')).toBe(isElecting)
  })

  it('PLUS-5 replaces the health monitor too, and adds up the workers', () => {
    const text = replaceContainers(
      `
kind: Pod
spec:
  containers:
    - {name: provisioner, image: registry.example.com:5000/csi-provisioner:v6, args: [--csi-address=/csi/csi.sock]}
    - name: health
      image: registry.example.com:5000/csi-external-health-monitor-controller:v0.18
      args: [--csi-address=/csi/csi.sock, --worker-threads=20, --monitor-interval=2m, --enable-node-watcher]
`,
      'stowage:1',
    )
    expect(parse(text).spec.containers[0].args).toEqual([
      'sidecar',
      '--controllers=provisioner,health-monitor',
      '--csi-address=/csi/csi.sock',
      '--worker-threads=120',
      '--health-monitor-worker-threads=20',
      '--monitor-interval=2m',
    ])
  })

  it('rejects a manifest or argument that it cannot replace, with the reason', () => {
    const replace = (manifest: string) => () => replaceContainers(manifest, 'stowage:1')
    expect(replace('kind: ConfigMap')).toThrow(/^No container with an image of csi-provisioner/)
    expect(replace('a: [')).toThrow(/^Cannot read the manifest: /)
    expect(replace(aPod('[--snapshotter]'))).toThrow(/^The argument "--snapshotter" of csi-provisioner is not a flag/)
    expect(replace(aPod('[--timeout]'))).toThrow(/^The flag --timeout of csi-provisioner has no value/)
    expect(replace(aPod('{a: 1}'))).toThrow(/^args of csi-provisioner is not a list/)
  })

  it('PLUS-5 prints arguments that the command accepts', () => {
    const deployment = parseAllDocuments(replaceContainers(DEPLOYMENT, 'stowage:1'))[1]!.toJS()
    const [, ...args] = deployment.spec.template.spec.containers[1].args
    const parser = new Command().exitOverride().option('-v, --v <number>')
    addFlags(parser, SIDECAR_FLAGS)
    const settings = readSidecarSettings(parser.parse(args, { from: 'user' }).opts())
    expect(settings).toMatchObject({ holdUpstreamLeases: true, leaderElection: true, kubeApiQps: 30 })
    expect(settings.attacher.timeoutMs).toBe(360_000)
  })
})
