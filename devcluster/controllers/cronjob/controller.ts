/**
 * CronJobs: a Job at each time of the schedule.
 */
import { AlreadyExists } from '../../../controller/kube/errors.ts'
import { CronJob, Job } from '../../../controller/kube/kinds.ts'
import { comeBack, type Install, named } from '../common/surroundings.ts'
import { decideCronJob } from './decide.ts'

export const installCronJobs: Install = ({ manager, clock }) => {
  manager
    .controller(CronJob, named('cronjob-controller'))
    .owns(Job)
    .reconcile(async ({ object: cron, client, event }) => {
      const jobs = client.owned(Job, cron)
      const { create, replace, forget, status, after, note } = decideCronJob(cron, jobs, clock.now())
      for (const job of [...forget, ...replace]) {
        await client.delete(Job, job, { propagation: 'Background' })
        event('Normal', 'SuccessfulDelete', `Deleted job ${job.metadata.name}`)
      }
      if (note) event('Warning', note.reason, note.message)
      if (create) {
        try {
          const { metadata } = await client.create(Job, create)
          event('Normal', 'SuccessfulCreate', `Created job ${metadata.name}`)
        } catch (error) {
          // Made before the status was written the last time.
          if (!(error instanceof AlreadyExists)) throw error
        }
      }
      await client.status(CronJob, cron, status)
      return comeBack(after)
    })
}
