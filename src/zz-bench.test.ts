// @ts-nocheck
import { it } from 'vitest'
import { decideCreate } from './apiserver/create-object.ts'
import { decideUpdate } from './apiserver/update-object.ts'
import { startTrial } from './apiserver/server-trial.ts'
import { trackCreated } from './apiserver/managed-fields.ts'
it('bench', async () => {
  const t = await startTrial()
  const on = t.server.objects, off = { ...on, trackManagedFields: false }
  const resource = on.resources.preferred('', 'persistentvolumeclaims')
  const user = { name: 'x', groups: [] }
  const body = { metadata: { name: 'c', labels: { app: 'x' } }, spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } } }
  const target = { resource, namespace: 'default', name: '', subresource: '', user, dryRun: false, fieldManager: 'me' }
  await t.post('/apis/storage.k8s.io/v1/storageclasses', {metadata:{name:'fast'},provisioner:'x'})
  await t.post('/api/v1/namespaces/default/persistentvolumeclaims?fieldManager=me', {...body, metadata:{...body.metadata,name:'old'}})
  const view = await new Promise((r) => t.store.transact((v) => { r(v); return [] }))
  const best = (f, n) => { let b = 1e9; for (let r = 0; r < 40; r++) { const s = process.hrtime.bigint(); for (let i = 0; i < n; i++) f(i); b = Math.min(b, Number(process.hrtime.bigint() - s) / n / 1000) } return b.toFixed(2) }
  const run = (deps) => best(() => decideCreate(deps, target, body, view), 1000)
  const old = { ...target, name: 'old', subresource: 'status' }
  let k = 0
  const upd = (deps) => best(() => decideUpdate(deps, old, { needsVersion: false, next: (o) => ({ ...o, status: { phase: 'Bound', capacity: { storage: `${(k++ % 9) + 1}Gi` } } }) }, view), 1000)
  const obj = (await t.get('/api/v1/namespaces/default/persistentvolumeclaims/old')).json
  for (let r = 0; r < 4; r++) console.log('create off', run(off), 'on', run(on), '| status update off', upd(off), 'on', upd(on), 'µs; track alone', best(() => { trackCreated(on, target, obj) }, 1000), 'stringify managed', best(() => JSON.stringify(obj.metadata.managedFields), 1000))
})
