// Creates one object while a measurement is prepared.
import { type Endpoint, openConnection } from './http-connection.ts'
import { numberedRequest } from './load-role.ts'

export async function post(endpoint: Endpoint, path: string, body: object): Promise<void> {
  const connection = await openConnection(endpoint, () => {})
  const request = numberedRequest({ method: 'POST', path, body: JSON.stringify(body) })(0)
  const { status } = await new Promise<{ status: number }>((resolve) => connection.send(request, resolve))
  connection.close()
  if (status >= 300) throw new Error(`POST ${path}: ${status}`)
}
