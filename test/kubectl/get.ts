// Steps for `kubectl get` and `kubectl events`: output formats, selectors, sorting, paging and raw paths. get-table.ts has
// the default tables.
import { expect } from 'vitest'
import { parse } from 'yaml'
import { parseTable } from './parse-table.ts'
import { linesOf, type Step } from './step.ts'

const namesIn = (text: string) => parseTable(text).rows.map((row) => row.NAME)

export const getSteps: readonly Step[] = [
  {
    name: 'get -o json and -o yaml print the same object',
    async run({ kubectl }) {
      const json = JSON.parse(await kubectl.out('get pvc orders -o json'))
      expect(json).toMatchObject({
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'orders', namespace: 'shop', labels: { app: 'shop', tier: 'db' } },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '10Gi' } },
          volumeMode: 'Filesystem',
        },
        status: { phase: 'Pending' },
      })
      expect(parse(await kubectl.out('get pvc orders -o yaml'))).toEqual(json)
    },
  },
  {
    name: 'get -o json of a collection prints the kind of every item',
    async run({ kubectl }) {
      const list = await kubectl.json('get pvc')
      expect(list).toMatchObject({ apiVersion: 'v1', kind: 'List' })
      expect(list.items.map(({ kind, metadata }: any) => `${kind} ${metadata.name}`)).toEqual([
        'PersistentVolumeClaim archive',
        'PersistentVolumeClaim orders',
      ])
    },
  },
  {
    name: 'get -o name, jsonpath, custom-columns and go-template print the selected fields',
    async run({ kubectl }) {
      expect(await kubectl.out('get pvc -o name')).toBe('persistentvolumeclaim/archive\npersistentvolumeclaim/orders\n')
      expect(await kubectl.out('get pvc orders -o jsonpath={.spec.resources.requests.storage}')).toBe('10Gi')
      expect(
        await kubectl.out([
          'get',
          'pvc',
          '-o',
          'jsonpath={range .items[*]}{.metadata.name}={.spec.storageClassName} {end}',
        ]),
      ).toBe('archive=fast orders=fast ')
      const columns = await kubectl.out(
        'get pvc -o custom-columns=CLAIM:.metadata.name,SIZE:.spec.resources.requests.storage',
      )
      expect(parseTable(columns).rows).toEqual([
        { CLAIM: 'archive', SIZE: '1Ti' },
        { CLAIM: 'orders', SIZE: '10Gi' },
      ])
      expect(await kubectl.out('get pvc orders -o go-template={{.spec.volumeAttributesClassName}}')).toBe('silver')
    },
  },
  {
    name: 'get -A lists all namespaces and prints their names',
    async run({ kubectl }) {
      const { headers, rows } = parseTable(await kubectl.out('get pvc -A'))
      expect(headers.slice(0, 2)).toEqual(['NAMESPACE', 'NAME'])
      expect(rows.map((row) => `${row.NAMESPACE}/${row.NAME}`)).toEqual(['shop/archive', 'shop/orders'])
    },
  },
  {
    name: 'get -l supports label selectors, and rejects an invalid one',
    async run({ kubectl }) {
      for (const [selector, expected] of [
        ['tier=db', ['orders']],
        ['tier!=db', ['archive']],
        ['tier in (db,tape)', ['archive', 'orders']],
        ['tier notin (db)', ['archive']],
        ['app', ['archive', 'orders']],
        ['app,tier=tape', ['archive']],
      ] as const) {
        expect(namesIn(await kubectl.out(['get', 'pvc', '-l', selector])), selector).toEqual(expected)
      }
      expect((await kubectl.run('get pvc -l !app')).err).toBe('No resources found in shop namespace.\n')
      expect(await kubectl.expectError(['get', 'pvc', '-l', 'tier==='])).toMatch(
        /^Error from server \(BadRequest\): .*unable to parse requirement/,
      )
    },
  },
  {
    name: 'get --field-selector selects by supported fields and rejects others',
    async run({ kubectl }) {
      expect(namesIn(await kubectl.out('get pvc --field-selector metadata.name=orders'))).toEqual(['orders'])
      expect(namesIn(await kubectl.out('get pvc --field-selector metadata.name!=orders'))).toEqual(['archive'])
      expect(namesIn(await kubectl.out('get pods -A --field-selector status.phase=Pending,spec.nodeName='))).toEqual([
        'web',
      ])
      expect(namesIn(await kubectl.out('get secrets --field-selector type=Opaque'))).toContain('login')
      expect(await kubectl.expectError('get pvc --field-selector spec.volumeName=x')).toMatch(
        /Error from server \(BadRequest\): .*field label not supported: "?spec\.volumeName/,
      )
    },
  },
  {
    name: 'get supports --sort-by, --show-labels, -L and --no-headers',
    async run({ kubectl }) {
      expect(namesIn(await kubectl.out('get pvc --sort-by=.metadata.labels.tier'))).toEqual(['orders', 'archive'])
      const labels = parseTable(await kubectl.out('get pvc --show-labels')).rows.map((row) => row.LABELS)
      expect(labels).toEqual(['app=shop,tier=tape', 'app=shop,tier=db'])
      const { headers, rows } = parseTable(await kubectl.out('get pvc -L tier'))
      expect(headers.at(-1)).toBe('TIER')
      expect(rows.map((row) => row.TIER)).toEqual(['tape', 'db'])
      expect(linesOf(await kubectl.out('get pvc --no-headers'))).toHaveLength(2)
    },
  },
  {
    name: 'get --chunk-size lists all objects in pages',
    async run({ kubectl }) {
      expect(namesIn(await kubectl.out('get pvc --chunk-size=1'))).toEqual(['archive', 'orders'])
      expect(namesIn(await kubectl.out('get ns --chunk-size=2'))).toEqual(
        namesIn(await kubectl.out('get ns --chunk-size=0')),
      )
    },
  },
  {
    name: 'get accepts several kinds and several names',
    async run({ kubectl }) {
      const text = await kubectl.out('get pvc,pv,sc -o name')
      expect(linesOf(text)).toEqual([
        'persistentvolumeclaim/archive',
        'persistentvolumeclaim/orders',
        'persistentvolume/disk-a',
        'storageclass.storage.k8s.io/fast',
      ])
      expect(await kubectl.out('get pvc/orders pv/disk-a -o name')).toBe(
        'persistentvolumeclaim/orders\npersistentvolume/disk-a\n',
      )
    },
  },
  {
    name: 'get all lists pods',
    async run({ kubectl }) {
      expect(await kubectl.out('get all -o name')).toBe('pod/web\n')
      expect((await kubectl.run('get all')).err).toBe('')
    },
  },
  {
    name: 'get of older API versions returns the same object',
    async run({ kubectl }) {
      const uid = await kubectl.out('get sc fast -o jsonpath={.metadata.uid}')
      const betaClass = await kubectl.json('get storageclasses.v1beta1.storage.k8s.io fast')
      expect(betaClass).toMatchObject({ apiVersion: 'storage.k8s.io/v1beta1', metadata: { uid } })
      for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
        const silver = await kubectl.json(`get volumeattributesclasses.${version}.storage.k8s.io silver`)
        expect(silver).toMatchObject({ apiVersion: `storage.k8s.io/${version}`, parameters: { iops: '3000' } })
      }
    },
  },
  {
    name: 'get --raw reads paths that are not resources',
    async run({ kubectl }) {
      expect(await kubectl.out('get --raw /healthz')).toBe('ok')
      expect(await kubectl.out('get --raw /readyz?verbose')).toMatch(/^\[\+\]ping ok\n(.*\n)*readyz check passed\n$/)
      expect(await kubectl.out('get --raw /metrics')).toMatch(/^apiserver_request_total\{.*verb="POST".*\} \d+$/m)
      expect(JSON.parse(await kubectl.out('get --raw /version')).gitVersion).toMatch(/^v1\.\d+\.\d+/)
      expect(JSON.parse(await kubectl.out('get --raw /api'))).toMatchObject({ kind: 'APIVersions', versions: ['v1'] })
      expect(await kubectl.expectError('get --raw /nowhere')).toContain('NotFound')
    },
  },
  {
    name: 'events --for lists the events of one object',
    needs: 'events',
    async run({ kubectl }) {
      const command = kubectl.minor < 26 ? 'alpha events' : 'events'
      const text = await kubectl.out(`${command} --for pvc/orders`)
      expect(text).toMatch(/Warning\s+NoRoom\s+PersistentVolumeClaim\/orders\s+nothing is left/)
    },
  },
]
