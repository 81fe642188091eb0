// Public exports of the quota controller, which computes and verifies the usage of ResourceQuotas.
export { createQuotaMetrics } from './metrics.ts'
export { createQuotaController } from './quota-controller.ts'
